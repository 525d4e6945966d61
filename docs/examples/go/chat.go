// Package chat is a minimal client of the chat service that respects Retry-After.
package chat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Service is a chat service.
type Service struct {
	Sid          string `json:"sid"`
	FriendlyName string `json:"friendly_name"`
}

// Client asks the service at an address.
type Client struct{ Base string }

func (client Client) ask(method, path string, form url.Values, into any) error {
	tries := 5
	// Setting IMPATIENT disables retries, which makes the tests fail.
	if os.Getenv("IMPATIENT") != "" {
		tries = 1
	}
	for left := tries - 1; ; left-- {
		request, err := http.NewRequest(method, client.Base+path, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		request.SetBasicAuth("reference-api-key", "reference-api-secret")
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode/100 == 2 {
			return json.NewDecoder(answer.Body).Decode(into)
		}
		if left == 0 || answer.StatusCode != 429 && answer.StatusCode != 503 {
			return fmt.Errorf("%s %s: %d", method, path, answer.StatusCode)
		}
		seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

// CreateService makes a service.
func (client Client) CreateService(name string) (service Service, err error) {
	err = client.ask("POST", "/chat/v2/Services", url.Values{"FriendlyName": {name}}, &service)
	return
}

// Services lists them.
func (client Client) Services() ([]Service, error) {
	var page struct{ Services []Service }
	err := client.ask("GET", "/chat/v2/Services", nil, &page)
	return page.Services, err
}
