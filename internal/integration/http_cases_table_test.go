package integration

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// publicFault is a kind of fault that idempotency layers had in public.
type publicFault struct {
	id   string
	kind string // the first word of the claims that its cases make
	seen string // where it was reported
}

var publicFaults = []publicFault{
	{"C01", "claim-not-released", "VilledeMontreal/express-idempotency#32"},
	{"C03", "orphan-after-crash", "pathosDev/actor-ts#984"},
	{"C05", "live-claim-stolen", "aws-powertools/powertools-lambda-python#8386"},
	{"C08", "fencing", "usesend/useSend#282"},
	{"C09", "concurrent-claim", "ikyriak/IdempotentAPI#19"},
	{"C11", "waiter", "KanishJebaMathewM/Truxify#6898"},
	{"C13", "conflict-status", "idempot-dev/idempot-js#181"},
	{"C15", "client-disconnect", "fullstackhero/dotnet-starter-kit#1333"},
	{"C18", "truncated-response", "granit-fx/granit-dotnet#1151"},
	{"C19", "framing-headers", "ikyriak/IdempotentAPI#21"},
	{"C21", "replay-header-leak", "granit-fx/granit-dotnet#1151"},
	{"C23", "replay-fidelity", "VSN2015/concerns_on_rails#47"},
	{"C25", "empty-body", "Sidarthapati/one_day_delivery#61"},
	{"C27", "streaming", "yusing/godoxy#206"},
	{"C29", "interim-1xx", "roadrunner-server/roadrunner#2381"},
	{"C31", "compression", "helidon-io/helidon#11658"},
	{"C33", "json-order", "aws-powertools/powertools-lambda-python#638"},
	{"C36", "json-numbers", "nlohmann/json#5297"},
	{"C37", "json-strings", "rocicorp/repc#207"},
	{"C39", "fingerprint-omits", "pathosDev/actor-ts#609"},
	{"C41", "operation-binding", "ietf-wg-httpapi/idempotency#22"},
	{"C43", "path-form", "zalando/restful-api-guidelines#571"},
	{"C45", "false-mismatch", "chatvector-ai/chatvector-ai#520"},
	{"C47", "mismatch-check-bypass", "aws-powertools/powertools-lambda-java#2260"},
	{"C49", "tenant-scope", "arun0009/idempotent#217"},
	{"C51", "auth-order", "MCKRUZ/microsoft-agentic-harness#127"},
	{"C53", "key-syntax", "josipmusa/idempotency4j#20"},
	{"C55", "key-encoding", "ietf-wg-httpapi/idempotency#10"},
	{"C57", "header-name", "Huachao/vscode-restclient#796"},
	{"C59", "expiry-read", "aws-powertools/powertools-lambda-typescript#1158"},
	{"C61", "expiry-policy", "ietf-wg-httpapi/idempotency#49"},
	{"C63", "clock", "xavierjohn/Trellis#695"},
	{"C65", "store-down", "jcagarcia/grape-idempotency#20"},
	{"C67", "store-loss", "AnchorNet-Org/AnchorNet-Backend#221"},
	{"C69", "memory-growth", "gofiber/fiber#3262"},
	{"C71", "stored-error", "ikyriak/IdempotentAPI#37"},
	{"C73", "client-error-policy", "LerianStudio/midaz#709"},
	{"C76", "ambiguous-failure", "pome-sh/digital-twins#275"},
	{"C77", "safe-methods", "ietf-wg-httpapi/idempotency#23"},
	{"C79", "cors", "superseriousbusiness/gotosocial#1664"},
	{"C133", "job-unique", "dbos-inc/dbos-transact-py#544"},
	{"C143", "commit-window", "ikyriak/IdempotentAPI#57"},
}

// httpCase is a fault as an HTTP client of a shop would meet it.
type httpCase struct {
	claim string // it begins with the kind of fault
	test  func(t *testing.T, on shopWay)
	not   exception
}

func (c *httpCase) kind() string {
	kind, _, _ := strings.Cut(c.claim, ":")
	return kind
}

// exception is where a case does not apply, and why. The zero exception is
// nowhere.
type exception struct {
	why string
	on  func(on shopWay) bool
}

func (e exception) at(on shopWay) bool { return e.on != nil && e.on(on) }

var (
	unlessSQLite = exception{
		"only SQLite has one writer, and a file that the test can fill",
		func(on shopWay) bool { return on.kind != onSQLite },
	}
	ifAtomic = exception{
		"an atomic claim has no lease: it lasts as long as its transaction",
		func(on shopWay) bool { return on.mode == semel.Atomic },
	}
	unlessAtomic = exception{
		"a claim that others see has a lease",
		func(on shopWay) bool { return on.mode != semel.Atomic },
	}
	unlessLeased = exception{
		"what is in a transaction is not sent before it is committed",
		func(on shopWay) bool { return on.mode != semel.Leased },
	}
)

// togetherCase is a case that is played on all ways at once.
type togetherCase struct {
	claim string
	test  func(t *testing.T, ways []shopWay)
}

// httpCases are all cases.
type httpCases struct {
	all      []httpCase
	together []togetherCase
}

func (c *httpCases) add(claim string, test func(t *testing.T, on shopWay)) {
	c.addBut(exception{}, claim, test)
}

func (c *httpCases) addBut(not exception, claim string, test func(t *testing.T, on shopWay)) {
	c.all = append(c.all, httpCase{claim, test, not})
}

func allHTTPCases() httpCases {
	var c httpCases
	claimCases(&c)
	timeCases(&c)
	replyCases(&c)
	requestCases(&c)
	callerCases(&c)
	keyCases(&c)
	processCases(&c)
	windowCases(&c)
	storeCases(&c)
	layerCases(&c)
	policyCases(&c)
	return c
}

// TestHTTPCases plays the faults that idempotency layers had in public, on each
// kind of store and in each of its modes.
func TestHTTPCases(t *testing.T) {
	t.Parallel()
	var ways []shopWay
	for _, on := range shopWays {
		if on.whole = t; on.raced || !assert.RaceDetector {
			ways = append(ways, on)
		}
	}
	for _, c := range allHTTPCases().together {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			c.test(t, ways)
		})
	}
	for _, on := range ways {
		t.Run(on.String(), func(t *testing.T) {
			t.Parallel()
			for _, c := range allHTTPCases().all {
				if c.not.at(on) {
					continue
				}
				t.Run(c.claim, func(t *testing.T) {
					t.Parallel()
					c.test(t, on)
				})
			}
		})
	}
}

// TestEachPublicFaultIsTried on each way to keep keys, or has a case for that
// way in place of one that does not apply there.
func TestEachPublicFaultIsTried(t *testing.T) {
	t.Parallel()
	all := allHTTPCases()
	cases := all.all
	for _, c := range all.together {
		cases = append(cases, httpCase{claim: c.claim})
	}
	known := map[string]bool{}
	for _, f := range publicFaults {
		assert.True(t, !known[f.kind], "%s is there once", f.kind)
		known[f.kind] = true
		for _, on := range shopWays {
			tried := false
			for i := range cases {
				tried = tried || cases[i].kind() == f.kind && !cases[i].not.at(on)
			}
			assert.True(t, tried, "%s (%s) is tried on %v", f.id, f.kind, on)
		}
	}
	for i := range cases {
		assert.True(t, known[cases[i].kind()], "the kind of %q is known", cases[i].claim)
	}
}
