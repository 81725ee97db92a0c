package versions

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // An image with one program has no time zones.

	"github.com/robfig/cron/v3"
)

// Schedule is when a version service is asked: five fields of cron, in a time zone.
type Schedule struct {
	fields cron.Schedule
	zone   *time.Location
}

// ParseSchedule reads cron's five fields and the name of a time zone; without a name it is UTC.
func ParseSchedule(text, zone string) (Schedule, error) {
	words := strings.Fields(text)
	if len(words) != 5 {
		return Schedule{},
			fmt.Errorf("schedule %q has %d fields and not cron's five: minute, hour, day, month, "+
				"weekday", short(text), len(words))
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	fields, err := parser.Parse(strings.Join(words, " "))
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w", short(text), err)
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Schedule{}, fmt.Errorf("time zone %q is not known: write it as Europe/Berlin", short(zone))
	}
	if fields.Next(time.Unix(0, 0).UTC()).IsZero() {
		return Schedule{}, fmt.Errorf("schedule %q names a day that never comes", short(text))
	}
	return Schedule{fields: fields, zone: location}, nil
}

// Next is the first time after t. Clocks that are put forward delay a time that they skip, and where they are
// put back a time counts once, when it comes first.
//
// The fields are those of a clock on the wall. They are compared with one that is never put forward or back,
// and what it shows is then looked up in the zone.
func (s Schedule) Next(t time.Time) time.Time {
	const longestChange = 3 * time.Hour
	shown := onWall(t.In(s.zone)).Add(-longestChange)
	for {
		shown = s.fields.Next(shown)
		if shown.IsZero() {
			return shown
		}
		if next := s.instant(shown); next.After(t) {
			return next
		}
	}
}

// Due is the time that has come since the last check and is not older than the window.
func (s Schedule) Due(last, now time.Time, window time.Duration) (time.Time, bool) {
	after := now.Add(-window)
	// A check in the future is one of a clock that was wrong, and must not end all further ones.
	if last.After(after) && !last.After(now) {
		after = last
	}
	next := s.Next(after)
	return next, !next.IsZero() && !next.After(now)
}

// instant is when the zone's clocks show what shown says in UTC.
func (s Schedule) instant(shown time.Time) time.Time {
	const day = 24 * time.Hour
	first := s.withOffset(shown, -day)
	if onWall(first).Equal(shown) {
		return first
	}
	if then := s.withOffset(shown, day); onWall(then).Equal(shown) {
		return then
	}
	return first
}

// withOffset is the instant at which clocks show it that are as far from UTC as the zone's are a while away.
func (s Schedule) withOffset(shown time.Time, away time.Duration) time.Time {
	_, seconds := shown.Add(away).In(s.zone).Zone()
	return shown.Add(-time.Duration(seconds) * time.Second).In(s.zone)
}

// onWall is the time in UTC at which a clock there shows what t's shows.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}
