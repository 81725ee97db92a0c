package versions

// Entry is one version of a component, and its image.
type Entry struct {
	Version Version
	Image   string
	// Hash and HashARM64 are digests that are passed on.
	Hash, HashARM64 string
	Status          string
	Critical        bool
}

// Disabled is the status of a version that is not to be used.
const Disabled = "disabled"

// Recommends tells whether a version is one of those that `recommended` means.
func (e Entry) Recommends() bool { return e.Status == Recommended || e.Status == "required" }

// Offer is what one version of a product's operator is offered: entries by component.
type Offer struct {
	Product, Operator string
	Matrix            map[string][]Entry
}
