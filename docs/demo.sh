# Short names for what the documents do with a running demo. From the root of
# the repository, in any POSIX shell with curl:
#
#   go run ./cmd/semel demo     # in another terminal
#   . docs/demo.sh
#
# A demo elsewhere: DEMO=http://HOST:PORT before the second line.

DEMO=${DEMO:-http://127.0.0.1:8420}

# send PATH BODY [CURL OPTIONS]: JSON to the demo.
send() {
	to=$1 body=$2
	shift 2
	curl -s "$DEMO$to" -H 'Content-Type: application/json' -d "$body" "$@"
}

# an_order AMOUNT: what a payment or a charge is asked for with.
an_order() { printf '{"amount":%s,"currency":"USD","recipientId":"r_123"}' "$1"; }

# pay PATH KEY AMOUNT [SECONDS]: the status, or 000 if there was no answer
# within SECONDS, 30 unless said.
pay() {
	send "$1" "$(an_order "$3")" -H "Idempotency-Key: $2" -m "${4:-30}" -o /dev/null -w '%{http_code}\n'
}

# again PATH KEY AMOUNT: pays as a good client does, with the same key until
# there is an answer that says yes or no, and prints that one's status.
again() {
	until
		said=$(pay "$@")
		[ "$said" != 000 ] && [ "$said" != 409 ]
	do sleep 1; done
	echo "$said"
}

# fault NAME [TIMES]: the next payments meet it.
fault() { send /demo/faults "{\"fault\":\"$1\",\"times\":${2:-1}}" -o /dev/null; }

# ledger keyed|keyless|naive: what the ledger says of that door.
ledger() { curl -s "$DEMO/demo/ledger" | grep -o "\"$1\":{[^}]*}"; }

# bank dedupe true|false: whether the bank looks at its keys.
bank() { send /demo/bank "{\"$1\":$2}" -X PUT; }

# charge KEY AMOUNT: asks the bank itself.
charge() { send /charges "$(an_order "$2")" -H "Idempotency-Key: $1"; }

# put ID ORDER, get ID, delete ID: an order, and the status of the answer.
put() { send "/orders/$1" "$2" -X PUT -w ' %{http_code}\n'; }
get() { curl -s "$DEMO/orders/$1" -w ' %{http_code}\n'; }
delete() { curl -s "$DEMO/orders/$1" -X DELETE -o /dev/null -w '%{http_code}\n'; }
