package versions

import (
	"strings"
	"testing"
	"time"
)

func schedule(t *testing.T, text, zone string) Schedule {
	t.Helper()
	s, err := ParseSchedule(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04 -07", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// New York puts its clocks forward on 2026-03-08, from 2:00 to 3:00, and back on 2026-11-01, from 2:00 to
// 1:00; São Paulo put them forward at midnight on 2018-11-04; Lord Howe Island puts them back by half an
// hour.
func TestTimesOfAScheduleInATimeZone(t *testing.T) {
	for _, row := range []struct {
		text, zone, after string
		want              []string
	}{
		{"0 4 * * *", "Etc/UTC", "2026-11-30 03:59 +00", []string{"2026-11-30 04:00 +00",
			"2026-12-01 04:00 +00"}},
		{"0 4 * * *", "", "2026-11-30 04:00 +00", []string{"2026-12-01 04:00 +00"}},
		{"0 4 * * *", "Europe/Berlin", "2026-11-30 00:00 +00", []string{"2026-11-30 03:00 +00"}},
		{"0 4 * * *", "Europe/Berlin", "2026-07-01 00:00 +00", []string{"2026-07-01 02:00 +00"}},
		{"0 4 * * 0", "Asia/Tokyo", "2026-11-28 00:00 +00", []string{"2026-11-28 19:00 +00"}},
		{"0 4 1 * 1", "Etc/UTC", "2026-11-24 00:00 +00", []string{"2026-11-30 04:00 +00",
			"2026-12-01 04:00 +00", "2026-12-07 04:00 +00"}},
		{"*/20 4-5 * * *", "Etc/UTC", "2026-11-30 04:41 +00", []string{"2026-11-30 05:00 +00",
			"2026-11-30 05:20 +00"}},
		{"0 0 29 2 *", "Etc/UTC", "2026-11-30 00:00 +00", []string{"2028-02-29 00:00 +00"}},

		// A time that the clocks skip comes as much later as they were put forward.
		{"30 2 * * *", "America/New_York", "2026-03-07 12:00 -05", []string{"2026-03-08 03:30 -04",
			"2026-03-09 02:30 -04"}},
		{"30 2 * * *", "America/New_York", "2026-03-08 03:10 -04", []string{"2026-03-08 03:30 -04"}},
		{"0 2 8 3 *", "America/New_York", "2026-03-07 12:00 -05", []string{"2026-03-08 03:00 -04",
			"2027-03-08 02:00 -05"}},
		{"0 * * * *", "America/New_York", "2026-03-08 00:30 -05", []string{"2026-03-08 01:00 -05",
			"2026-03-08 03:00 -04", "2026-03-08 04:00 -04"}},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00 -03", []string{"2018-11-04 01:00 -02",
			"2018-11-05 00:00 -02"}},
		{"0 1 4 11 *", "America/Sao_Paulo", "2018-11-03 23:00 -03", []string{"2018-11-04 01:00 -02"}},

		// A time that they show twice comes once, and what comes after it comes.
		{"30 1 * * *", "America/New_York", "2026-10-31 12:00 -04", []string{"2026-11-01 01:30 -04",
			"2026-11-02 01:30 -05"}},
		{"30 1 * * *", "America/New_York", "2026-11-01 01:10 -05", []string{"2026-11-02 01:30 -05"}},
		{"0 * * * *", "America/New_York", "2026-11-01 00:30 -04", []string{"2026-11-01 01:00 -04",
			"2026-11-01 02:00 -05"}},
		{"30 2 * * *", "America/New_York", "2026-10-31 12:00 -04", []string{"2026-11-01 02:30 -05"}},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-03 16:00 +00", []string{"2026-04-04 14:45 +00",
			"2026-04-05 15:15 +00"}},
	} {
		s := schedule(t, row.text, row.zone)
		at := moment(t, row.after)
		for _, want := range row.want {
			if at = s.Next(at); !at.Equal(moment(t, want)) {
				t.Errorf("%q in %q after %s: %s, not %s", row.text, row.zone, row.after, at, want)
				break
			}
		}
	}
}

func TestRestartNeitherForgetsNorRepeatsACheck(t *testing.T) {
	s := schedule(t, "0 4 * * *", "Etc/UTC")
	const window = 2 * time.Hour
	for _, row := range []struct {
		situation, last, now string
		due                  bool
		next                 string
	}{
		{"before its time", "2026-11-29 04:00 +00", "2026-11-30 03:59 +00", false, "2026-11-30 04:00 +00"},
		{"at its time", "2026-11-29 04:00 +00", "2026-11-30 04:00 +00", true, "2026-11-30 04:00 +00"},
		{"away at its time, back in the window", "2026-11-29 04:00 +00", "2026-11-30 05:59 +00", true,
			"2026-11-30 04:00 +00"},
		{"back when the window has passed", "2026-11-29 04:00 +00", "2026-11-30 06:00 +00", false,
			"2026-12-01 04:00 +00"},
		{"restarted behind the check", "2026-11-30 04:01 +00", "2026-11-30 04:02 +00", false,
			"2026-12-01 04:00 +00"},
		{"away for a year", "2025-11-30 04:01 +00", "2026-11-30 05:00 +00", true, "2026-11-30 04:00 +00"},
		{"created in the window", "2026-11-30 04:30 +00", "2026-11-30 04:31 +00", false,
			"2026-12-01 04:00 +00"},
		{"last check in the future, as a clock was wrong", "2036-01-01 04:00 +00", "2026-11-30 04:00 +00",
			true, "2026-11-30 04:00 +00"},
		{"the same, at another time", "2036-01-01 04:00 +00", "2026-11-30 12:00 +00", false,
			"2026-12-01 04:00 +00"},
	} {
		next, due := s.Due(moment(t, row.last), moment(t, row.now), window)
		if due != row.due || !next.Equal(moment(t, row.next)) {
			t.Errorf("%s: due %t, next %s", row.situation, due, next)
		}
	}
}

func TestScheduleThatIsNoneIsRefusedInWords(t *testing.T) {
	for _, row := range []struct{ text, zone, want string }{
		{"0 4 * *", "Etc/UTC", "has 4 fields and not cron's five"},
		{"0 0 4 * * *", "Etc/UTC", "has 6 fields and not cron's five"},
		{"", "Etc/UTC", "has 0 fields"},
		{"@daily", "Etc/UTC", "has 1 fields"},
		{"60 4 * * *", "Etc/UTC", "above maximum (59)"},
		{"0 24 * * *", "Etc/UTC", "above maximum (23)"},
		{"0 4 * * 7", "Etc/UTC", "above maximum (6)"},
		{"0 4 0 * *", "Etc/UTC", "below minimum (1)"},
		{"*/0 4 * * *", "Etc/UTC", "positive"},
		{"TZ=Asia/Tokyo 4 * * *", "Etc/UTC", "expected exactly 5 fields"},
		{"TZ=0\t*\t*\t*\t*", "Etc/UTC", "bad location"},
		{"0 4 30 2 *", "Etc/UTC", "names a day that never comes"},
		{"0 4 * * *", "Mars/Olympus", `time zone "Mars/Olympus" is not known`},
		{"0 4 * * *", "Local", `time zone "Local" is not known`},
		{"0 4 * * *", "../../etc/passwd", "is not known"},
	} {
		_, err := ParseSchedule(row.text, row.zone)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q in %q: %v, not %q", row.text, row.zone, err, row.want)
		}
	}
}

// Whatever the schedule and the zone: the next time is later, and nothing that matches lies between.
func FuzzSchedule(f *testing.F) {
	f.Add("30 2 * * *", uint8(0), int64(1772949600))
	f.Add("*/7 1-3 * * 0,6", uint8(2), int64(1793500000))
	zones := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo",
		"Etc/UTC"}
	f.Fuzz(func(t *testing.T, text string, zone uint8, seconds int64) {
		s, err := ParseSchedule(text, zones[int(zone)%len(zones)])
		if err != nil {
			return
		}
		at := time.Unix(seconds%(1<<32), 0)
		next := s.Next(at)
		if next.IsZero() {
			return
		}
		if !next.After(at) {
			t.Fatalf("%q: after %s comes %s", text, at, next)
		}
		if between := at.Add(next.Sub(at) / 2); !s.Next(between).Equal(next) {
			t.Errorf("%q: after %s comes %s, and after %s %s", text, at, next, between, s.Next(between))
		}
	})
}
