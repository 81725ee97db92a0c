package versions

// Question tells whether a service is to be asked, and refuses a wish that cannot be fulfilled whatever it
// answers. No running version means that no member has run yet.
func (a Apply) question(running *Version) (bool, *Problem) {
	switch {
	case a.Off():
		return false, nil
	case running == nil:
		return true, nil
	case a.Series != "" && a.Series != running.Series():
		return false, otherSeries(a.Series, *running)
	case a.Exact == nil:
		return true, nil
	case a.Exact.Same(*running):
		return false, nil
	}
	refused := forwards(*a.Exact, *running)
	return refused == nil, refused
}

// Decide tells whether the offered version is to run in place of the running one.
func Decide(apply Apply, running *Version, offered Entry) (bool, *Problem) {
	version := offered.Version
	switch {
	case apply.Exact != nil && version.String() != apply.Exact.String():
		return false, problem(Malformed, "asked for %s, the service offers %s", apply.Exact, version)
	case apply.Series != "" && version.Series() != apply.Series:
		return false, problem(OtherSeries, "asked for %s, the service offers %s", apply.Series, version)
	case offered.Status == Disabled:
		return false, problem(NotOffered, "the service offers %s and calls it disabled", version)
	case running == nil:
		return true, nil
	case version.Same(*running):
		return false, nil
	}
	refused := forwards(version, *running)
	return refused == nil, refused
}

// forwards refuses what is no newer version of the same series.
func forwards(version, running Version) *Problem {
	if version.Series() != running.Series() {
		return otherSeries(version.String(), running)
	}
	if running.Newer(version) {
		return problem(Backwards,
			"%s is older than %s, which runs: a server may not start with the data of a "+
				"newer one", version, running)
	}
	return nil
}

func otherSeries(wanted string, running Version) *Problem {
	return problem(OtherSeries, "%s is no update of %s, which runs: only a person changes major or minor "+
		"number", wanted, running)
}
