import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** One server for the whole run, and an isolated sandbox for each test. */
class Serve implements BeforeAllCallback, AfterAllCallback {
    private Process process;
    private String address;

    @Override
    public void beforeAll(ExtensionContext context) throws Exception {
        Path ready = Files.createTempDirectory("serve").resolve("ready");
        String program = Optional.ofNullable(System.getenv("CONFORMANT")).orElse("conformant");
        process = new ProcessBuilder(program, "serve", "--port", "0", "--ready-file", ready.toString(), "--exit-with-parent")
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        for (int turn = 0; !Files.exists(ready); turn++) {
            if (turn > 600 || !process.isAlive()) throw new IOException("serve does not begin");
            Thread.sleep(50);
        }
        address = Files.readString(ready).trim();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        process.destroy();
    }

    private void control(String world, String what, String body) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(world + "/_control/" + what)).POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() / 100 != 2) throw new IOException(answer.body());
    }

    /** The address of a new sandbox. */
    String world(String name) throws IOException, InterruptedException {
        String world = address + "/_world/" + name;
        control(world, "reset", "{}");
        return world;
    }

    /** Says what calls get: {@code script(world, "chat/create-service", "429:1", "1")}. */
    void script(String world, String on, String answer, String calls) throws IOException, InterruptedException {
        control(world, "script", """
                {"on": "%s", "answer": "%s", "calls": "%s"}""".formatted(on, answer, calls));
    }
}
