// Package server answers the API of Percona's version service from a file: for clusters without Internet, and
// for servers that are not Percona's.
package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"proxima.io/operator/internal/versions"
)

// Codes of gRPC, which the API's errors carry beside HTTP's.
const (
	invalidArgument = 3
	notFound        = 5
)

// Handler answers the three routes of the API from the file as it is now, and probes.
func (f *File) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /versions/v1/{product}", f.product)
	mux.HandleFunc("GET /versions/v1/{product}/{operator}", f.product)
	mux.HandleFunc("GET /versions/v1/{product}/{operator}/{apply}", f.apply)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// product answers everything that there is of a product, or of one version of its operator.
func (f *File) product(w http.ResponseWriter, r *http.Request) {
	if offers := f.of(r.PathValue("product"), r.PathValue("operator")); len(offers) > 0 {
		answer(w, offers)
		return
	}
	fail(w, http.StatusNotFound, notFound, "nothing is known of "+path(r))
}

// apply answers one version of each component.
func (f *File) apply(w http.ResponseWriter, r *http.Request) {
	apply, err := versions.ParseApply(r.PathValue("apply"))
	if err != nil {
		fail(w, http.StatusBadRequest, invalidArgument, err.Error())
		return
	}
	if apply.Off() {
		answer(w, nil)
		return
	}
	offers := f.of(r.PathValue("product"), r.PathValue("operator"))
	if len(offers) == 0 {
		fail(w, http.StatusNotFound, notFound, "nothing is known of "+path(r))
		return
	}
	var running []string
	if said := r.URL.Query().Get("databaseVersion"); said != "" {
		running = append(running, said)
	}
	newest, err := versions.Newest(running)
	if err != nil {
		fail(w, http.StatusBadRequest, invalidArgument, "databaseVersion: "+err.Error())
		return
	}
	chosen, err := choose(offers[0], apply, newest)
	if err != nil {
		fail(w, http.StatusNotFound, notFound, path(r)+": "+err.Error())
		return
	}
	answer(w, []versions.Offer{chosen})
}

// of is what the file has of a product: of every version of its operator, or of one.
func (f *File) of(product, operator string) []versions.Offer {
	var offers []versions.Offer
	for _, offer := range *f.offers.Load() {
		if offer.Product == product && (operator == "" || offer.Operator == operator) {
			offers = append(offers, offer)
		}
	}
	return offers
}

func path(r *http.Request) string {
	return strings.TrimSpace(r.PathValue("product") + " " + r.PathValue("operator"))
}

func answer(w http.ResponseWriter, offers []versions.Offer) {
	type entry struct {
		ImagePath      string `json:"imagePath"`
		ImageHash      string `json:"imageHash"`
		ImageHashArm64 string `json:"imageHashArm64"`
		Status         string `json:"status"`
		Critical       bool   `json:"critical"`
	}
	type product struct {
		Product  string                      `json:"product"`
		Operator string                      `json:"operator"`
		Matrix   map[string]map[string]entry `json:"matrix"`
	}
	products := []product{}
	for _, offer := range offers {
		matrix := map[string]map[string]entry{}
		for component, entries := range offer.Matrix {
			matrix[component] = map[string]entry{}
			for _, e := range entries {
				version := e.Version.String()
				matrix[component][version] = entry{e.Image, e.Hash, e.HashARM64, e.Status, e.Critical}
			}
		}
		products = append(products, product{offer.Product, offer.Operator, matrix})
	}
	send(w, http.StatusOK, map[string]any{"versions": products})
}

// fail answers an error as gRPC's gateway does.
func fail(w http.ResponseWriter, status, code int, message string) {
	send(w, status, map[string]any{"code": code, "message": message, "details": []string{}})
}

func send(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("an answer cannot be written as JSON: %s", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = w.Write(text)
}
