import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** A minimal client of the chat service that respects Retry-After. */
public record Chat(String base) {
    private static final String KEY = Base64.getEncoder().encodeToString("reference-api-key:reference-api-secret".getBytes(StandardCharsets.UTF_8));
    /** Setting IMPATIENT disables retries, which makes the tests fail. */
    private static final int TRIES = System.getenv("IMPATIENT") == null ? 5 : 1;
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private String ask(String method, String path, String form) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(base + path)).method(method, HttpRequest.BodyPublishers.ofString(form))
                .header("Authorization", "Basic " + KEY).header("Content-Type", "application/x-www-form-urlencoded").build();
        for (int left = TRIES - 1; ; left--) {
            var answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() / 100 == 2) return answer.body();
            if (left == 0 || answer.statusCode() != 429 && answer.statusCode() != 503) throw new IOException(method + " " + path + ": " + answer.statusCode());
            Thread.sleep(1000 * answer.headers().firstValueAsLong("Retry-After").orElse(1));
        }
    }

    public String createService(String name) throws IOException, InterruptedException {
        return ask("POST", "/chat/v2/Services", "FriendlyName=" + URLEncoder.encode(name, StandardCharsets.UTF_8));
    }

    public String services() throws IOException, InterruptedException {
        return ask("GET", "/chat/v2/Services", "");
    }
}
