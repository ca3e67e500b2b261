package semelhttp_test

import (
	"io"
	"log"
	"os"
)

// silentLog is for servers whose handlers panic on purpose.
func silentLog() *log.Logger { return log.New(io.Discard, "", 0) }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
