package sqlstore

import (
	"context"

	"github.com/semel-dev/semel"
)

func (s *Store) beginAlone(ctx context.Context, p semel.BeginParams) (row, semel.BeginResult, error) {
	seen, err := s.read(ctx, s.handles.ownRead, s.sql.read, p.Scope, p.Key)
	if err != nil {
		return row{}, semel.BeginResult{}, unavailable(err)
	}
	return seen, semel.BeginResult{}, nil
}

func (s *Store) extendAlone(context.Context, semel.Claim, semel.ExtendParams) (semel.Held, error) {
	return semel.Held{}, nil
}

func (s *Store) finishAlone(context.Context, semel.Claim, semel.FinishParams) (semel.Held, error) {
	return semel.Held{}, nil
}

func claimedColumns() string { return "" }
