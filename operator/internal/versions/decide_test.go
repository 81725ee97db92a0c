package versions

import "testing"

// outcome is what a whole check would come to: ask or not, and what the answer leads to.
func outcome(t *testing.T, apply, running, offered, status string) string {
	t.Helper()
	wish, err := ParseApply(apply)
	if err != nil {
		t.Fatal(err)
	}
	var now *Version
	if running != "" {
		version, err := ParseRunning(running)
		if err != nil {
			t.Fatal(err)
		}
		now = &version
	}
	ask, refused := wish.question(now)
	if refused != nil {
		return refused.Reason
	}
	if !ask {
		return "not asked"
	}
	if status == "" {
		status = Recommended
	}
	update, refused := Decide(wish, now, Entry{Version: parsed(t, offered), Status: status})
	switch {
	case refused != nil:
		return refused.Reason
	case update:
		return "update"
	}
	return "stays"
}

func TestNeverBackwardsAndNeverToAnotherSeriesWhateverIsOffered(t *testing.T) {
	for _, row := range []struct{ apply, running, offered, status, want string }{
		{"disabled", "8.0.41-32.1", "", "", "not asked"},
		{"never", "8.0.41-32.1", "", "", "not asked"},
		{"Never", "", "", "", "not asked"},
		{"", "", "", "", "not asked"},

		{"recommended", "8.0.41-32.1", "8.0.42-33.1", "", "update"},
		{"Recommended", "8.0.41-32.1", "8.0.42-33.1", "", "update"},
		{"recommended", "8.0.42-33.1", "8.0.42-33.1", "", "stays"},
		{"recommended", "8.0.42-33.1", "8.0.42-33.2", "", "update"},
		{"recommended", "8.0.42-33.1", "8.0.41-32.1", "", Backwards},
		{"recommended", "8.0.42-33.2", "8.0.42-33.1", "", Backwards},
		{"recommended", "8.0.42-33.1", "8.4.5-5.1", "", OtherSeries},
		{"recommended", "8.0.42-33.1", "5.7.44-31.65", "", OtherSeries},
		{"recommended", "8.0.42-33.1", "9.0.42-33.1", "", OtherSeries},
		{"recommended", "8.0.41-32.1", "8.0.42-33.1", "required", "update"},
		{"recommended", "8.0.41-32.1", "8.0.42-33.1", "disabled", NotOffered},
		{"recommended", "", "8.0.42-33.1", "", "update"},
		{"recommended", "11.8.3-MariaDB", "11.8.3", "", "stays"},
		{"recommended", "11.8.3-MariaDB", "11.8.9", "", "update"},
		{"recommended", "10.11.19-MariaDB", "11.8.9", "", OtherSeries},
		{"recommended", "5.7.44-48-57", "5.7.44-31.65", "", "stays"},

		{"latest", "8.0.41-32.1", "8.0.42-33.1", "available", "update"},
		{"latest", "8.0.41-32.1", "8.4.5-5.1", "available", OtherSeries},
		{"latest", "8.0.42-33.1", "8.0.41-32.1", "available", Backwards},

		{"8.0-recommended", "8.0.41-32.1", "8.0.42-33.1", "", "update"},
		{"8.0-recommended", "8.4.5-5.1", "", "", OtherSeries},
		{"8.4-latest", "8.0.42-33.1", "", "", OtherSeries},
		{"8.0-latest", "", "8.0.42-33.1", "", "update"},
		{"8.0-latest", "", "8.4.5-5.1", "", OtherSeries},

		{"8.0.42-33.1", "8.0.41-32.1", "8.0.42-33.1", "available", "update"},
		{"8.0.42-33.1", "8.0.42-33.1", "", "", "not asked"},
		{"8.0.42-33.1", "8.0.43-34.1", "", "", Backwards},
		{"8.0.42-33.1", "5.7.44-48-57", "", "", OtherSeries},
		{"8.0.42-33.1", "8.0.41-32.1", "8.0.43-34.1", "", Malformed},
		{"8.0.42-33.1", "", "8.0.42-33.1", "", "update"},
		{"8.0.42-33.1", "", "8.0.43-34.1", "", Malformed},
	} {
		if got := outcome(t, row.apply, row.running, row.offered, row.status); got != row.want {
			t.Errorf("apply %s, running %q, offered %s %s: %s, not %s",
				row.apply, row.running, row.offered, row.status, got, row.want)
		}
	}
}

func TestApplyThatIsNoFormOfPerconasIsRefused(t *testing.T) {
	for _, text := range []string{
		"newest", "8.0", "8-recommended", "8.0.42-recommended", "recommended-8.0", "8.0-", "on",
		"8.0-Never", " latest",
	} {
		// 8.0 and 8.0.42-recommended are versions by their form, and no service has them.
		apply, err := ParseApply(text)
		if err == nil && apply.Exact == nil {
			t.Errorf("%q was read as %+v", text, apply)
		}
	}
}

func TestServiceIsAskedForTheSeriesOnlyWhereNothingRuns(t *testing.T) {
	running := parsed(t, "8.0.41-32.1")
	for apply, want := range map[string][2]string{
		"recommended":     {"recommended", "recommended"},
		"8.0-recommended": {"8.0-recommended", "recommended"},
		"8.0-Latest":      {"8.0-latest", "latest"},
		"8.0.42-33.1":     {"8.0.42-33.1", "8.0.42-33.1"},
	} {
		wish, err := ParseApply(apply)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{wish.Word(nil), wish.Word(&running)}; got != want {
			t.Errorf("%s: %v, not %v", apply, got, want)
		}
	}
}
