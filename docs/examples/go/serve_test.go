// One server for the whole run, and an isolated sandbox for each test.
package chat

import (
	"bytes"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var server string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "serve")
	if err != nil {
		log.Fatal(err)
	}
	ready, program := filepath.Join(folder, "ready"), os.Getenv("CONFORMANT")
	if program == "" {
		program = "conformant"
	}
	process := exec.Command(program, "serve", "--port", "0", "--ready-file", ready, "--exit-with-parent")
	if err := process.Start(); err != nil {
		log.Fatal(err)
	}
	for turn := 0; server == ""; turn++ {
		if turn > 600 {
			log.Fatal("serve does not begin")
		}
		time.Sleep(50 * time.Millisecond)
		address, _ := os.ReadFile(ready)
		server = strings.TrimSpace(string(address))
	}
	code := m.Run()
	process.Process.Kill()
	os.RemoveAll(folder)
	os.Exit(code)
}

// The address of a new sandbox, and a function that scripts its responses.
func world(t *testing.T) (string, func(on, answer, calls string)) {
	base := server + "/_world/" + t.Name()
	control := func(what string, body any) {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(base+"/_control/"+what, "application/json", bytes.NewReader(text))
		if err != nil || answer.StatusCode/100 != 2 {
			t.Fatal(what, answer, err)
		}
		answer.Body.Close()
	}
	control("reset", map[string]string{})
	return base, func(on, answer, calls string) {
		control("script", map[string]string{"on": on, "answer": answer, "calls": calls})
	}
}
