package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// client trusts the API server's certificate, as soon as there is one.
func (c *cluster) client() *http.Client {
	roots := x509.NewCertPool()
	if text, err := os.ReadFile(filepath.Join(c.dir, "tls", "apiserver.crt")); err == nil {
		roots.AppendCertsFromPEM(text)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "kubernetes"},
		DisableKeepAlives: true,
	}}
}

// An api speaks to the API server.
type api struct {
	client *http.Client
	url    string
}

func (c *cluster) api() *api { return &api{c.client(), c.url} }

// call sends an object, if any, and decodes the answer.
func (a *api) call(ctx context.Context, method, path, contentType string, object, into any) error {
	var body io.Reader
	if object != nil {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", contentType)
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// As much of Kubernetes' types as the tests look at.
type (
	meta struct {
		Name, Namespace   string
		Labels            map[string]string
		DeletionTimestamp string
	}
	pod struct {
		Metadata meta
		Spec     struct {
			NodeName                   string
			Containers, InitContainers []container
		}
		Status struct {
			PodIP      string
			Conditions []struct{ Type, Status string }
		}
	}
	container struct {
		Name  string
		Ports []struct{ ContainerPort int }
	}
	pods   struct{ Items []pod }
	slices struct {
		Items []struct {
			Metadata  meta
			Endpoints []struct {
				Addresses  []string
				Conditions struct{ Ready bool }
			}
			Ports []struct{ Port int }
		}
	}
	policies struct {
		Items []struct {
			Spec struct {
				PodSelector struct{ MatchLabels map[string]string }
				Ingress     []struct{ Ports []struct{ Port int } }
			}
		}
	}
)

func (a *api) get(ctx context.Context, path string, into any) error {
	return a.call(ctx, http.MethodGet, path, "", nil, into)
}
