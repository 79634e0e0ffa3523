package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.CallException;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.work.lecturers.LecturersWork;
import dev.parley.work.records.RecordsWork;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A table of faults: each means the same over every technology, in the words that the technology has for it, and
 * changes nothing.
 */
@Timeout(120)
class OneMeaningTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Topology LINE = Topology.parse("line:2");
    private static final Topology STAR = Topology.parse("graph:s1>s2,s3");
    private static final String NOBODY = "00000000-0000-4000-8000-000000000000";

    @BeforeAll
    static void start() throws InterruptedException {
        RealServers.start("postgres", "mysql", "redis");
    }

    /** How a call ended: a code, or what came back. */
    private static <Q extends Record, R extends Record> String end(
            Neighbour service, Operation<Q, R> operation, Q request) {
        try {
            return service.call(operation, request, TIMEOUT).toString();
        } catch (CallException e) {
            assertThat(e.getMessage()).as("what a person reads").isNotBlank();
            return e.code().name();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rest", "graphql", "grpc", "rpcx", "websocket"})
    void faultsOfReadersMeanTheSame(String technology) throws Exception {
        LecturersWork work = new LecturersWork();
        try (Services services = new Services(technology, work, LINE, RealServers.locations())) {
            Neighbour service = services.client();
            Work.Exchange<?, ?> exchange = work.exchange(MessageSpec.parse("flat:1"), LINE, LINE.entry(), 1);
            exchange.enter(service, TIMEOUT);
            String token = ((Page) exchange.request(0)).token();
            Map<String, String> ends = new LinkedHashMap<>();
            ends.put("no token", end(service, Lecturers.FLAT, new Page("", 0, 1)));
            ends.put("a wrong token", end(service, Lecturers.FLAT, new Page("0".repeat(64), 0, 1)));
            ends.put("SQL in a token", end(service, Lecturers.NESTED, new Page("' OR '1'='1", 0, 1)));
            ends.put("a wrong password", end(service, Lecturers.AUTHENTICATE, new Credentials("reader", "wrong")));
            ends.put("SQL in a user", end(service, Lecturers.AUTHENTICATE, new Credentials("' OR 1=1; -- ", "")));
            ends.put("an id nobody has", end(service, Lecturers.PROFILE, new ProfileAsked(token, NOBODY)));
            ends.put("an id that is none", end(service, Lecturers.PROFILE, new ProfileAsked(token, "1 OR 1=1")));
            ends.put("a page of none", end(service, Lecturers.FLAT, new Page(token, 0, 0)));
            ends.put(
                    "SQL in a name", end(service, Lecturers.NAMED, new NameAsked(token, "'; DROP TABLE profile; -- ")));
            assertThat(ends)
                    .containsExactlyInAnyOrderEntriesOf(Map.of(
                            "no token", "UNAUTHENTICATED",
                            "a wrong token", "UNAUTHENTICATED",
                            "SQL in a token", "UNAUTHENTICATED",
                            "a wrong password", "UNAUTHENTICATED",
                            "SQL in a user", "UNAUTHENTICATED",
                            "an id nobody has", "NOT_FOUND",
                            "an id that is none", "INVALID",
                            "a page of none", "INVALID",
                            "SQL in a name", "Profiles[profiles=[]]"));
            assertThat(service.call(Lecturers.FLAT, new Page(token, 0, 2_221), TIMEOUT)
                            .profiles())
                    .as("nothing is lost")
                    .hasSize(2_221);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rest", "graphql", "grpc", "rpcx", "websocket"})
    void faultsOfWritersMeanTheSame(String technology) throws Exception {
        Tables tables = new Tables(RealServers.port("postgres"));
        try (Services services = new Services(technology, new RecordsWork(), STAR, RealServers.locations())) {
            Neighbour service = services.client();
            Map<String, Entry> before = tables.entries("s2");
            Map<String, String> photosBefore = tables.photos("s2");
            Entry good = new Entry(NOBODY, "a title", "an author", "a body");
            Map<String, String> ends = new LinkedHashMap<>();
            ends.put("an edit of none", end(service, Records.EDIT, good));
            ends.put("a delete of none", end(service, Records.DELETE, new EntryId(NOBODY)));
            ends.put("a photo that is not there", end(service, Records.DOWNLOAD, new PhotoName("none")));
            ends.put("SQL in an id", end(service, Records.DELETE, new EntryId("1'; DROP TABLE entry; --")));
            ends.put("no title", end(service, Records.ADD, new Entry(NOBODY, "", "a", "b")));
            ends.put(
                    "a character that cannot be stored", end(service, Records.ADD, new Entry(NOBODY, "t\0", "a", "b")));
            ends.put("a body too large", end(service, Records.ADD, new Entry(NOBODY, "t", "a", "b".repeat(100_001))));
            ends.put("a photo too large", end(service, Records.UPLOAD, new Photo("large", new byte[10_000_001])));
            assertThat(ends)
                    .containsExactlyInAnyOrderEntriesOf(Map.of(
                            "an edit of none", "NOT_FOUND",
                            "a delete of none", "NOT_FOUND",
                            "a photo that is not there", "NOT_FOUND",
                            "SQL in an id", "INVALID",
                            "no title", "INVALID",
                            "a character that cannot be stored", "INVALID",
                            "a body too large", "TOO_LARGE",
                            "a photo too large", "TOO_LARGE"));
            for (String leaf : new String[] {"s2", "s3"}) {
                assertThat(tables.entries(leaf))
                        .as("nothing is lost, nothing added")
                        .isEqualTo(before);
                assertThat(tables.photos(leaf)).isEqualTo(photosBefore);
            }
            Entry sql = new Entry(NOBODY, "'); DROP TABLE entry; --", "O'Neill", "\\ \" ąčę 日本");
            assertThat(service.call(Records.ADD, sql, TIMEOUT)).isEqualTo(sql);
            assertThat(tables.entries("s2")).containsEntry(NOBODY, sql).hasSize(before.size() + 1);
        }
    }

    // ---- in the technology's own way

    private static HttpResponse<String> post(Location at, String path, String body) throws Exception {
        return HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create("http://" + at + path))
                                .header("Content-Type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void restSaysItByStatusAndProblemDetails() throws Exception {
        try (Services services = new Services("rest", new RecordsWork(), STAR, RealServers.locations())) {
            Location s1 = services.at("s1");
            HttpResponse<String> broken = post(s1, "/records/add", "{\"id\":");
            assertThat(broken.statusCode()).isEqualTo(400);
            assertThat(broken.body()).contains("\"code\":\"PROTOCOL\"").contains("not a Entry");
            HttpResponse<String> missing = post(s1, "/records/delete", "{\"id\":\"" + NOBODY + "\"}");
            assertThat(missing.statusCode()).isEqualTo(404);
            assertThat(missing.headers().firstValue("Content-Type")).hasValue("application/problem+json");
            assertThat(missing.body()).contains("\"code\":\"NOT_FOUND\"");
        }
    }

    @Test
    void graphqlSaysItByErrorsWithACode() throws Exception {
        try (Services services = new Services("graphql", new RecordsWork(), STAR, RealServers.locations())) {
            Location s1 = services.at("s1");
            HttpResponse<String> broken = post(s1, "/graphql", "{\"query\":");
            assertThat(broken.statusCode()).isEqualTo(400);
            assertThat(broken.body()).contains("\"errors\"").contains("\"code\":\"PROTOCOL\"");
            HttpResponse<String> missing = post(
                    s1, "/graphql", "{\"query\":\"mutation { delete(input: {id: \\\"" + NOBODY + "\\\"}) { id } }\"}");
            assertThat(missing.statusCode()).isEqualTo(200);
            assertThat(missing.body()).contains("\"errors\"").contains("\"code\":\"NOT_FOUND\"");
        }
    }
}
