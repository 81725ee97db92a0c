package versions

import (
	"strings"
	"testing"
)

func parsed(t *testing.T, text string) Version {
	t.Helper()
	version, err := ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestVersionsCompareAsSemanticVersionsWithTheBuildAsPrerelease(t *testing.T) {
	for _, rising := range [][]string{
		{"5.7.44-31.65", "8.0.9-1.1", "8.0.35-27.1", "8.0.42-9.1", "8.0.42-33.1", "8.0.42-33.2", "8.0.42",
			"8.4.5-5.1"},
		{"10.11.9", "10.11.19", "11.4.2", "11.8.3", "11.8.10"},
		{"13.9", "13.10", "14.0-1", "14.0", "14.1"},
	} {
		for i, a := range rising {
			for j, b := range rising {
				if got := parsed(t, a).Newer(parsed(t, b)); got != (i > j) {
					t.Errorf("%s newer than %s: %t", a, b, got)
				}
				if got := parsed(t, a).Same(parsed(t, b)); got != (i == j) {
					t.Errorf("%s same as %s: %t", a, b, got)
				}
			}
		}
	}
}

func TestWhatIsNoVersionIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "8", "8.0.", "v8.0.42", "8.0.42-", "8.0.42 ", " 8.0.42", "8.0.42-33..1", "8.0.042", "8.0.42-033",
		"8.0.42+1", "8.0.42.1", "eight", "8.0.42\n", "999999.0.0", "-1.0.0", "8,0,42", strings.Repeat("1.",
			400),
	} {
		if version, err := ParseVersion(text); err == nil {
			t.Errorf("%q was read as %s", text, version)
		} else if !strings.Contains(err.Error(), "write it as 8.0.42-33.1") {
			t.Errorf("%q: no remedy in %q", text, err)
		}
	}
}

func TestWhatServersSayOfThemselvesIsRead(t *testing.T) {
	for said, want := range map[string]string{
		"8.0.42-33.1":                       "8.0.42-33.1",
		"8.0.42-33.1-log":                   "8.0.42-33.1",
		"8.0.42-33":                         "8.0.42-33",
		"5.7.44-48-57":                      "5.7.44",
		"11.8.3-MariaDB":                    "11.8.3",
		"11.8.3-MariaDB-log":                "11.8.3",
		"5.5.5-10.11.19-MariaDB-0+deb12u1":  "10.11.19",
		"10.6.22-18-MariaDB-enterprise-log": "10.6.22-18",
		"9.7.4":                             "9.7.4",
	} {
		version, err := ParseRunning(said)
		if err != nil || version.String() != want {
			t.Errorf("%q was read as %s, not %s (%v)", said, version, want, err)
		}
	}
	for _, said := range []string{"", "MariaDB", "8.0", "8.0.42_1", "x8.0.42", "8.0.42;DROP"} {
		if version, err := ParseRunning(said); err == nil {
			t.Errorf("%q was read as %s", said, version)
		}
	}
}

func TestServerThatDoesNotSayItsBuildHasEveryBuildOfItsNumber(t *testing.T) {
	running, err := ParseRunning("5.7.44-48-57")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"5.7.44-31.65": "same", "5.7.44": "same", "5.7.42-31.65": "older", "5.7.45-1.1": "newer",
	} {
		version := parsed(t, text)
		got := map[bool]string{true: "same"}[version.Same(running)]
		if version.Newer(running) {
			got += "newer"
		}
		if running.Newer(version) {
			got += "older"
		}
		if got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

func TestNewestOfMembersOfOneSeries(t *testing.T) {
	for _, row := range []struct {
		said []string
		want string
	}{
		{nil, "none"},
		{[]string{"11.8.3-MariaDB"}, "11.8.3"},
		{[]string{"8.0.41-32.1", "8.0.42-33.1", "8.0.41-32.1"}, "8.0.42-33.1"},
		{[]string{"8.0.42-33.1", "8.4.5-5.1"}, "members run 8.0.42-33.1 and 8.4.5-5.1"},
		{[]string{"8.0.42-33.1", "nonsense"}, `"nonsense", which is none`},
	} {
		newest, err := Newest(row.said)
		got := "none"
		switch {
		case err != nil:
			got = err.Error()
		case newest != nil:
			got = newest.String()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%v: %s, not %s", row.said, got, row.want)
		}
	}
}

// Whatever text is a version: it is the same as itself, of two exactly one relation holds, and a server that
// says it is read as it.
func FuzzVersion(f *testing.F) {
	f.Add("8.0.42-33.1", "8.0.42")
	f.Add("10.11.19", "5.5.5-10.11.19-MariaDB")
	f.Fuzz(func(t *testing.T, a, b string) {
		if running, err := ParseRunning(a); err == nil && !running.Same(running) {
			t.Errorf("%q differs from itself", a)
		}
		first, err := ParseVersion(a)
		if err != nil {
			return
		}
		if first.Newer(first) || !first.Same(first) {
			t.Errorf("%q differs from itself", a)
		}
		second, err := ParseVersion(b)
		if err != nil {
			return
		}
		relations := 0
		for _, holds := range []bool{first.Newer(second), second.Newer(first), first.Same(second)} {
			if holds {
				relations++
			}
		}
		if relations != 1 {
			t.Errorf("%d relations hold of %q and %q", relations, a, b)
		}
	})
}
