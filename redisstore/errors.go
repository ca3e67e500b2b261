package redisstore

import (
	"errors"

	"github.com/semel-dev/semel"
)

func configError(format string, args ...any) error {
	return semel.NewError(semel.CodeConfig, nil, "redisstore: "+format, args...)
}

// unavailable is the one place where an error of the server or of the client
// becomes Semel's. All of them are: what a node says that is being replaced
// (MOVED, CLUSTERDOWN, TRYAGAIN, LOADING, READONLY, MASTERDOWN, MISCONF) as well
// as a connection that broke.
func unavailable(err error) error {
	if errors.Is(err, semel.ErrStoreUnavailable) {
		return err
	}
	return semel.NewError(semel.CodeStoreUnavailable, err, "%s", semel.ErrStoreUnavailable.Text)
}
