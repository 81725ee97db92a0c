package server

import (
	"fmt"
	"slices"
	"strings"

	"proxima.io/operator/internal/versions"
)

// databases are the components that `apply` is about, for products that are not called after theirs.
var databases = map[string]string{"ps": "mysql", "psmdb": "mongod", "pg": "postgresql"}

// database is the component of a product that `apply` is about: pxc is that of pxc-operator.
func database(product string) string {
	name := strings.TrimSuffix(product, "-operator")
	if component, ok := databases[name]; ok {
		return component
	}
	return name
}

// choose leaves one version of each component of an offer. Percona's documentation promises the newest
// recommended version of the same series, and never an older one than what runs. Beside the database the
// others are the newest recommended ones, of its series if they count alike.
func choose(offer versions.Offer, apply versions.Apply, running *versions.Version) (versions.Offer, error) {
	database := database(offer.Product)
	entry, err := one(offer.Matrix[database], apply, running)
	if err != nil {
		return versions.Offer{}, fmt.Errorf("%s: %w", database, err)
	}
	matrix := map[string][]versions.Entry{}
	for component, entries := range offer.Matrix {
		if other, ok := beside(entries, entry.Version.Series()); ok {
			matrix[component] = []versions.Entry{other}
		}
	}
	matrix[database] = []versions.Entry{entry}
	return versions.Offer{Product: offer.Product, Operator: offer.Operator, Matrix: matrix}, nil
}

// one is the version of a database that `apply` means. The entries are the newest first.
func one(entries []versions.Entry, apply versions.Apply, running *versions.Version) (versions.Entry, error) {
	series, lowest := apply.Series, running
	switch {
	case series != "":
		lowest = nil
	case lowest != nil:
		series = lowest.Series()
	}
	for _, entry := range entries {
		switch {
		case entry.Status == versions.Disabled:
		case apply.Exact != nil:
			if entry.Version.String() == apply.Exact.String() {
				return entry, nil
			}
		case series != "" && entry.Version.Series() != series:
		case lowest != nil && lowest.Same(entry.Version):
			// What runs is all that is left: nothing newer fits.
			return entry, nil
		case lowest != nil && lowest.Newer(entry.Version):
		case apply.Choice == versions.Latest || entry.Recommends():
			return entry, nil
		}
	}
	switch {
	case apply.Exact != nil:
		return versions.Entry{}, fmt.Errorf("there is no version %s", apply.Exact)
	case lowest != nil:
		return versions.Entry{}, fmt.Errorf("nothing %s is as new as %s", apply.Choice, lowest)
	}
	wish := strings.TrimPrefix(series+"-"+apply.Choice, "-")
	return versions.Entry{}, fmt.Errorf("there is no %s version", wish)
}

func beside(entries []versions.Entry, series string) (versions.Entry, bool) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e versions.Entry) bool {
		return e.Status == versions.Disabled
	})
	for _, fits := range []func(versions.Entry) bool{
		func(e versions.Entry) bool { return e.Recommends() && e.Version.Series() == series },
		func(e versions.Entry) bool { return e.Version.Series() == series },
		versions.Entry.Recommends,
		func(versions.Entry) bool { return true },
	} {
		if i := slices.IndexFunc(entries, fits); i >= 0 {
			return entries[i], true
		}
	}
	return versions.Entry{}, false
}
