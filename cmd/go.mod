module github.com/semel-dev/semel/cmd

go 1.26.0

require github.com/semel-dev/semel v0.0.0

replace github.com/semel-dev/semel => ../
