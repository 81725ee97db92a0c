package server

import (
	"testing"

	"proxima.io/operator/internal/versions"
)

func entries(t *testing.T, rows ...string) []versions.Entry {
	t.Helper()
	text := "versions: [{product: pxc-operator, operator: '1', matrix: {pxc: {"
	for i := 0; i < len(rows); i += 2 {
		text += "'" + rows[i] + "': {imagePath: 'pxc:" + rows[i] + "', status: " + rows[i+1] + "}, "
	}
	offers, err := versions.ReadFile([]byte(text + "}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	return offers[0].Matrix["pxc"]
}

func TestNewestRecommendedOfTheSeriesAndNeverAnOlderOne(t *testing.T) {
	all := entries(t, "5.7.42-31.65", "available", "5.7.44-31.65", "recommended", "8.0.35-27.1",
		"recommended",
		"8.0.36-28.1", "recommended", "8.0.41-32.1", "available", "8.0.42-33.1", "recommended",
		"8.0.42-33.2", "available",
		"8.0.43-34.1", "disabled", "8.4.4-4.1", "required", "8.4.5-5.1", "available")
	for _, row := range []struct{ apply, running, want string }{
		{"recommended", "", "8.4.4-4.1"},
		{"latest", "", "8.4.5-5.1"},
		// The service's own code walks to the lowest recommended one above (8.0.36), its documentation does not.
		{"recommended", "8.0.35-27.1", "8.0.42-33.1"},
		{"recommended", "8.0.20-11.1", "8.0.42-33.1"},
		{"recommended", "8.0.42-33.1", "8.0.42-33.1"},
		{"recommended", "8.0.42-33.2", "8.0.42-33.2"},
		{"recommended", "8.0.43-34.1", "pxc: nothing recommended is as new as 8.0.43-34.1"},
		{"recommended", "8.0.44-35.1", "pxc: nothing recommended is as new as 8.0.44-35.1"},
		{"recommended", "9.0.1-1.1", "pxc: nothing recommended is as new as 9.0.1-1.1"},
		{"recommended", "5.7.44-48-57", "5.7.44-31.65"},
		{"recommended", "5.7.40-48-57", "5.7.44-31.65"},
		{"recommended", "8.4.5-5.1", "8.4.5-5.1"},
		{"latest", "8.0.35-27.1", "8.0.42-33.2"},
		{"latest", "5.7.42-31.65", "5.7.44-31.65"},
		{"8.0-recommended", "", "8.0.42-33.1"},
		{"8.0-latest", "", "8.0.42-33.2"},
		{"8.0-recommended", "8.4.5-5.1", "8.0.42-33.1"},
		{"8.1-recommended", "", "pxc: there is no 8.1-recommended version"},
		{"8.0.41-32.1", "", "8.0.41-32.1"},
		{"8.0.41-32.1", "8.4.5-5.1", "8.0.41-32.1"},
		{"8.0.43-34.1", "", "pxc: there is no version 8.0.43-34.1"},
		{"8.0.42", "", "pxc: there is no version 8.0.42"},
	} {
		apply, err := versions.ParseApply(row.apply)
		if err != nil {
			t.Fatal(err)
		}
		var running *versions.Version
		if row.running != "" {
			if running, err = versions.Newest([]string{row.running}); err != nil {
				t.Fatal(err)
			}
		}
		offer := versions.Offer{Product: "pxc-operator", Matrix: map[string][]versions.Entry{"pxc": all}}
		got := ""
		if chosen, err := choose(offer, apply, running); err != nil {
			got = err.Error()
		} else if len(chosen.Matrix["pxc"]) == 1 {
			got = chosen.Matrix["pxc"][0].Version.String()
		}
		if got != row.want {
			t.Errorf("apply %s, running %q: %s, not %s", row.apply, row.running, got, row.want)
		}
	}
}

func TestOtherComponentsFitTheDatabaseOrAreTheRecommendedOnes(t *testing.T) {
	for _, row := range []struct {
		entries []string
		series  string
		want    string
	}{
		{[]string{"8.4.0", "available", "8.0.35", "recommended", "2.4.29", "recommended"}, "8.0", "8.0.35"},
		{[]string{"8.4.0", "available", "8.0.35", "recommended", "2.4.29", "recommended"}, "8.4", "8.4.0"},
		{[]string{"2.7.3", "recommended", "2.8.0", "available"}, "8.0", "2.7.3"},
		{[]string{"2.7.3", "available", "2.8.0", "disabled"}, "8.0", "2.7.3"},
		{[]string{"2.8.0", "disabled"}, "8.0", ""},
		{nil, "8.0", ""},
	} {
		got := ""
		if entry, ok := beside(entries(t, row.entries...), row.series); ok {
			got = entry.Version.String()
		}
		if got != row.want {
			t.Errorf("%v beside %s: %q, not %q", row.entries, row.series, got, row.want)
		}
	}
}

func TestComponentThatApplyIsAboutFollowsFromTheProduct(t *testing.T) {
	for product, want := range map[string]string{
		"pxc-operator": "pxc", "mariadb": "mariadb", "mariadb-operator": "mariadb", "ps-operator": "mysql",
		"psmdb-operator": "mongod", "pg-operator": "postgresql",
	} {
		if got := database(product); got != want {
			t.Errorf("%s: %s, not %s", product, got, want)
		}
	}
}
