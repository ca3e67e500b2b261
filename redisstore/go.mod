module github.com/semel-dev/semel/redisstore

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/semel-dev/semel v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/semel-dev/semel => ../
