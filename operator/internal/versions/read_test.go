package versions

import (
	"fmt"
	"strings"
	"testing"
)

const good = `
versions:
  - product: mariadb
    operator: 1.0.0
    matrix:
      mariadb:
        11.8.3: {imagePath: "mariadb:11.8.3", status: recommended}
        11.8.10: {image_path: "registry.example:5000/db/mariadb:11.8.10", status: available, critical: true}
        10.11.19: {imagePath: "mariadb:10.11.19", status: recommended, image_hash: abc, image_hash_arm64: def}
`

func TestBothSpellingsAreReadAndTheNewestComesFirst(t *testing.T) {
	offers, err := ReadFile([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", offers[0].Matrix["mariadb"])
	for _, want := range []string{
		"{Version:11.8.10 Image:registry.example:5000/db/mariadb:11.8.10 Hash: HashARM64: Status:available Critical:true}",
		"{Version:10.11.19 Image:mariadb:10.11.19 Hash:abc HashARM64:def Status:recommended Critical:false}",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if !strings.HasPrefix(got, "[{Version:11.8.10 ") {
		t.Errorf("the newest is not the first of %s", got)
	}
}

func TestJSONWithTabsIsRead(t *testing.T) {
	text := "{\n\t\"versions\": [{\n\t\t\"product\": \"mariadb\", \"operator\": \"1.0.0\",\n\t\t\"matrix\": {\"log_collector\": " +
		"{\"4.0.1\": {\"image_path\": \"percona/fluentbit:4.0.1\", \"status\": \"recommended\"}}}\n\t}]\n}\n"
	offers, err := ReadFile([]byte(text))
	if err != nil || len(offers[0].Matrix["logCollector"]) != 1 {
		t.Errorf("%v (%v)", offers, err)
	}
}

func TestBadFileIsRefusedWithItsLineAndARemedy(t *testing.T) {
	changed := func(old, replacement string) string {
		if strings.Count(good, old) != 1 {
			t.Fatalf("%q is not once in the good file", old)
		}
		return strings.Replace(good, old, replacement, 1)
	}
	for _, row := range []struct{ text, want string }{
		{"", "line 1: it is empty: write `versions:`"},
		{"# nothing\n", "it is empty"},
		{"- product: mariadb\n", "line 1: the document has to be `key: value`"},
		{"versions:\n  mariadb: {}\n", "line 2: `versions` is no list: write each product behind a dash"},
		{"version: []\n", "line 1: the document has no `version`: what it may have is versions"},
		{good + "---\nversions: []\n", "a second document"},
		{"versions: [\n", "line 1: did not find expected node content"},
		{"versions:\n\t- product: x\n", "line 2: found character that cannot start any token"},
		{"versions: &a [*a]\n", "line 1: "},
		{"<<: {versions: []}\n", "line 1: the document has no `<<`"},
		{changed("product: mariadb\n    operator", "operator"),
			"line 3: a product without `product` or `operator`"},
		{changed("product: mariadb\n", "product: maria/db\n"), `line 3: "maria/db" is no part of a path`},
		{changed("operator: 1.0.0", "operator: [1.0.0]"), "line 4: there has to be one word"},
		{changed("matrix:", "matrixes:"),
			"line 5: a product has no `matrixes`: what it may have is product, operator, matrix"},
		{changed("11.8.3:", "11.8.x:"), `line 7: "11.8.x" is no version: write it as`},
		{changed("11.8.10:", "11.8.3:"), "line 8: `11.8.3` is there twice"},
		{changed("image_path: \"registry", "imagePath: \"a:b\", image_path: \"registry"),
			"line 8: `image_path` is there twice"},
		{changed("\"mariadb:11.8.3\"", "\"mariadb :11.8.3\""),
			`line 7: "mariadb :11.8.3" is no image: write it as REGISTRY/NAME:TAG`},
		{changed("imagePath: \"mariadb:11.8.3\", ", ""), "line 7: a version without image"},
		{changed(", status: available", ""), "line 8: a version without status"},
		{changed("status: available", "status: best"),
			`line 8: "best" is no status: write one of recommended, available`},
		{changed("status: available", "state: available"), "line 8: a version has no `state`"},
		{changed("critical: true", "critical: perhaps"), "line 8: `critical` is neither true nor false"},
		{good + strings.TrimPrefix(good, "\nversions:\n"), "line 10: mariadb 1.0.0 is there twice"},
		{"# " + strings.Repeat("x", MaxBytes) + good, "are more than the 1048576 that are read"},
	} {
		if _, err := ReadFile([]byte(row.text)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, not %q, for %s", err, row.want, short(row.text))
		}
	}
}

// Whatever is in a file: it is read or refused with a line, and what is read can be asked for.
func FuzzReadFile(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"versions":[{"product":"a","operator":"1","matrix":{"a":{"1.2.3":{"image_path":"a","status":"required"}}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		offers, err := ReadFile(data)
		if err != nil {
			if len(err.Error()) > 600 {
				t.Errorf("a message of %d characters", len(err.Error()))
			}
			return
		}
		for _, offer := range offers {
			for component, entries := range offer.Matrix {
				for i, entry := range entries {
					if entry.Image == "" || entry.Status == "" {
						t.Errorf("%s has %+v", component, entry)
					}
					if i > 0 && entry.Version.Newer(entries[i-1].Version) {
						t.Errorf("%s comes behind %s", entry.Version, entries[i-1].Version)
					}
				}
			}
		}
	})
}

// Whatever a service answers: there is one version with an image, or a reason.
func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(`{"versions":[{"product":"p","operator":"1","matrix":{"pxc":{"8.0.42-33.1":{"imagePath":"a:b","status":"recommended"}}}}]}`))
	f.Add([]byte(`{"versions":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		offers, err := ReadAnswer(data, "pxc")
		if err != nil {
			return
		}
		if entry, refused := Only(offers, "p", "1",
			"pxc"); refused == nil && (entry.Image == "" || entry.Version.String() == "") {
			t.Errorf("%+v", entry)
		}
	})
}
