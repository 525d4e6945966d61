import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What the client does when the service is busy. {@code IMPATIENT=1 mvn test} shows what a worse client would see. */
class ChatTest {
    @RegisterExtension
    static final Serve SERVE = new Serve();

    @Test
    void aBusyServiceIsAskedAgain() throws Exception {
        var world = SERVE.world("busy");
        SERVE.script(world, "chat/create-service", "429:1", "1");
        assertTrue(new Chat(world).createService("Support").contains("\"Support\""));
        assertTrue(new Chat(world).services().contains("\"Support\""));
    }

    @Test
    void aServiceThatIsAwayIsWaitedFor() throws Exception {
        var world = SERVE.world("away");
        SERVE.script(world, "chat/read-services", "503:1", "1-2");
        assertTrue(new Chat(world).services().contains("\"services\""));
    }
}
