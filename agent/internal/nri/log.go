package nri

import (
	"context"
	"fmt"
	"log/slog"
)

// stubLog takes what NRI's stub has to say into our log. All but its errors is about the steps of a
// connection, of which we say ourselves how it ended.
type stubLog struct{ log *slog.Logger }

func (s stubLog) Debugf(ctx context.Context, format string, args ...any) { s.step(ctx, format, args) }
func (s stubLog) Infof(ctx context.Context, format string, args ...any)  { s.step(ctx, format, args) }
func (s stubLog) Warnf(ctx context.Context, format string, args ...any)  { s.step(ctx, format, args) }

func (s stubLog) step(ctx context.Context, format string, args []any) {
	s.log.DebugContext(ctx, "NRI: "+fmt.Sprintf(format, args...))
}

func (s stubLog) Errorf(ctx context.Context, format string, args ...any) {
	s.log.ErrorContext(ctx, "NRI: "+fmt.Sprintf(format, args...))
}
