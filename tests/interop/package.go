// Uses the Go package as a test would: every valid document is read by its model, and a factory never ends.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	fixtures "conformant-fixtures"
	"conformant-fixtures/models"
)

func expect(holds bool, what ...any) {
	if !holds {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func main() {
	kinds := fixtures.Kinds()
	expect(len(kinds) > 50, kinds)
	due, refused := 0, 0
	for _, kind := range kinds {
		for _, document := range fixtures.Documents(kind) {
			err := json.Unmarshal(document, models.New[kind]())
			expect(err == nil, kind, err, string(document))
		}
		for _, wrong := range fixtures.Wrong(kind) {
			if wrong.BreaksSchema {
				due++
				if json.Unmarshal(wrong.Document, models.New[kind]()) != nil {
					refused++
				}
			}
		}
	}
	// Go's own reader takes what is missing and any text: what is left are other types and times.
	expect(refused*4 > due, refused, due)
	messages, err := fixtures.Load[models.ChatMessage]("chat/message")
	expect(err == nil && strings.HasPrefix(messages[0].Sid, "IM"), err)

	seed, err := strconv.ParseInt(os.Args[1], 10, 64)
	expect(err == nil, err)
	factory := fixtures.NewFactory[models.ChatMessage]("chat/message", seed)
	var made []json.RawMessage
	for range [20]int{} {
		one, err := factory.Document(map[string]any{"body": "hi"})
		expect(err == nil, err)
		made = append(made, one)
	}
	read, err := factory.Make(map[string]any{"body": "hi"})
	expect(err == nil && *read.Body == "hi" && strings.Contains(read.URL, read.Sid), err)
	_, err = factory.Make(map[string]any{"bdy": "hi"})
	expect(err != nil && strings.Contains(err.Error(), "has no field"), err)
	service := fixtures.NewFactory[models.ChatService]("chat/service", 1)
	_, err = service.Document(map[string]any{"limits": map[string]int{"channel_members": 1, "nope": 3}})
	expect(err != nil && strings.Contains(err.Error(), `has no field "limits.nope"`), err)
	said, err := json.Marshal(made)
	expect(err == nil, err)
	fmt.Println(string(said))
	fmt.Fprintf(os.Stderr, "   go: %d kinds, %d of %d documents that break a schema are refused by a model\n", len(kinds), refused, due)
}
