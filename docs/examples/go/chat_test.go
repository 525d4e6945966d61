// What the client does when the service is busy. `IMPATIENT=1 go test` shows what a worse client would see.
package chat

import "testing"

func TestABusyServiceIsAskedAgain(t *testing.T) {
	base, script := world(t)
	script("chat/create-service", "429:1", "1")
	service, err := Client{base}.CreateService("Support")
	if err != nil || service.FriendlyName != "Support" {
		t.Fatal(service, err)
	}
	if listed, err := (Client{base}).Services(); err != nil || len(listed) != 1 || listed[0].Sid != service.Sid {
		t.Fatal(listed, err)
	}
}

func TestAServiceThatIsAwayIsWaitedFor(t *testing.T) {
	base, script := world(t)
	script("chat/read-services", "503:1", "1-2")
	if listed, err := (Client{base}).Services(); err != nil || len(listed) != 0 {
		t.Fatal(listed, err)
	}
}
