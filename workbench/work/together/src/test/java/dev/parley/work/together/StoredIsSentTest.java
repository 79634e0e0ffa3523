package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Topology;
import dev.parley.process.Child;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
import dev.parley.work.records.RecordsWork;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What PostgreSQL holds is what clients sent over each technology. The long form: {@code -Dparley.operations=10000}, which also prints a line
 * a technology.
 */
@Timeout(300)
class StoredIsSentTest {
    private static final int OPERATIONS = Integer.getInteger("parley.operations", 500);
    private static final int CLIENTS = 50;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Topology STAR = Topology.parse("graph:s1>s2,s3");
    private static final List<String> LEAVES = List.of("s2", "s3");
    private static final Topology ALONE = Topology.parse("line:1");
    private static Tables tables;

    @BeforeAll
    static void start() throws InterruptedException {
        RealServers.start("postgres");
        tables = new Tables(RealServers.port("postgres"));
    }

    private static Entry entry(UUID id, long seed) {
        Random random = new Random(seed);
        return new Entry(id.toString(), text(random, 60), text(random, 24), text(random, 880));
    }

    private static String text(Random random, int characters) {
        return random.ints(characters, ' ', 'ž' + 1)
                .filter(c -> c < 0x7f || c > 0xa0)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .append('.')
                .toString();
    }

    @ParameterizedTest
    @ValueSource(strings = {"rest", "graphql", "grpc", "rpcx", "websocket", "rabbitmq", "kafka"})
    void recordsAndPhotosAreStoredAsSent(String technology) throws Exception {
        try (Services services = new Services(technology, new RecordsWork(), STAR, RealServers.locations())) {
            changeAndCompare(technology, services.client(), LEAVES);
            sendAndFetch(services.client(), LEAVES);
        }
    }

    /** After many changes by fifty clients, each table is what a model says. */
    private static void changeAndCompare(String technology, Neighbour service, List<String> leaves) throws Exception {
        Map<String, Entry> model = new ConcurrentHashMap<>(tables.entries(leaves.getFirst()));
        try (ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            long began = System.nanoTime();
            List<Future<?>> ends = new ArrayList<>();
            for (int client = 0; client < CLIENTS; client++) {
                long seed = client;
                ends.add(clients.submit(() -> change(service, seed, OPERATIONS / CLIENTS, model)));
            }
            for (Future<?> end : ends) {
                end.get();
            }
            for (String leaf : leaves) {
                assertThat(tables.entries(leaf).equals(new TreeMap<>(model)))
                        .as(
                                "the table of %s has %d rows, the model %d",
                                leaf, tables.entries(leaf).size(), model.size())
                        .isTrue();
            }
            if (OPERATIONS >= 10_000) {
                System.out.printf(
                        "%s: %d operations by %d clients, each stored by %s: their tables equal the model's %d records; %.1f s%n",
                        technology,
                        OPERATIONS,
                        CLIENTS,
                        String.join(" and ", leaves),
                        model.size(),
                        (System.nanoTime() - began) / 1e9);
            }
        }
    }

    /** A third each of adding, editing and deleting; records that another client knows are none of its business. */
    private static void change(Neighbour s1, long seed, int operations, Map<String, Entry> model) {
        Random random = new Random(seed);
        List<UUID> mine = new ArrayList<>();
        for (int i = 0; i < operations; i++) {
            int what = mine.isEmpty() ? 0 : random.nextInt(3);
            if (what == 0) {
                UUID id = new UUID(random.nextLong(), random.nextLong());
                Entry added = entry(id, random.nextLong());
                assertThat(s1.call(Records.ADD, added, TIMEOUT)).isEqualTo(added);
                mine.add(id);
                model.put(added.id(), added);
            } else if (what == 1) {
                Entry edited = entry(mine.get(random.nextInt(mine.size())), random.nextLong());
                assertThat(s1.call(Records.EDIT, edited, TIMEOUT)).isEqualTo(edited);
                model.put(edited.id(), edited);
            } else {
                UUID id = mine.remove(random.nextInt(mine.size()));
                s1.call(Records.DELETE, new EntryId(id.toString()), TIMEOUT);
                model.remove(id.toString());
            }
        }
    }

    private static String sha256(byte[] content) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
    }

    private static byte[] content(int bytes, long seed) {
        byte[] content = new byte[bytes];
        new Random(seed).nextBytes(content);
        return content;
    }

    /** Photos have one checksum: at the client, in the tables, and on the way back. */
    private static void sendAndFetch(Neighbour service, List<String> leaves) throws Exception {
        // none, one byte, both sides of a piece of a stream, and the paper's
        for (int bytes : new int[] {0, 1, 65_536, 65_537, 875_000}) {
            Photo photo = new Photo("žuvis & co " + bytes + "%.jpg", content(bytes, bytes));
            String sum = sha256(photo.content());
            assertThat(service.call(Records.UPLOAD, photo, TIMEOUT))
                    .isEqualTo(new StoredPhoto(photo.name(), bytes, sum));
            assertThat(tables.photos(leaves.getFirst())).containsEntry(photo.name(), sum);
            for (String leaf : leaves.subList(1, leaves.size())) {
                assertThat(tables.photos(leaf))
                        .as("told of the photo, without its content")
                        .containsEntry(photo.name(), sha256(new byte[0]));
            }
            Photo back = service.call(Records.DOWNLOAD, new PhotoName(photo.name()), TIMEOUT);
            assertThat(back.name()).isEqualTo(photo.name());
            assertThat(sha256(back.content())).isEqualTo(sum);
        }
    }

    // ---- behind a front

    /** Technologies whose libraries do not stand beside the others' on one class path. */
    @ParameterizedTest
    @ValueSource(strings = {"openfeign", "rest-spring", "grpc-spring", "rsocket", "thrift"})
    void behindAFrontToo(String technology) throws Exception {
        try (Pair pair = new Pair(technology, new RecordsWork())) {
            changeAndCompare(technology, pair.client(), List.of(Pair.BACK));
            sendAndFetch(pair.client(), List.of(Pair.BACK));
        }
    }

    // ---- a service that is killed

    @ParameterizedTest
    @ValueSource(strings = {"rest", "graphql", "grpc", "rpcx"})
    void aServiceKilledInMidWriteLeavesEachRecordAsOneWriteLeftIt(String technology) throws Exception {
        RecordsWork work = new RecordsWork();
        work.prepare(ALONE, node -> RealServers.locations());
        Location at = Services.freeLocation();
        List<Entry> base = List.copyOf(tables.entries("m1").values());
        Map<String, Entry> answered = new ConcurrentHashMap<>();
        Map<String, Entry> underWay = new ConcurrentHashMap<>();
        Map<String, String> photos = new ConcurrentHashMap<>();
        CountDownLatch busy = new CountDownLatch(200);
        base.forEach(entry -> answered.put(entry.id(), entry));
        try (Child service = Pair.service(
                        "m1", ALONE, work, List.of(technology), List.of("transport=" + technology, "at=" + at));
                Neighbour client = TransportProvider.named(technology).connect("client", work.contract(), at);
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int number = 0; number < 16; number++) {
                Entry mine = base.get(number);
                clients.submit(() -> {
                    for (long version = 0; ; version++) {
                        Entry edited = entry(UUID.fromString(mine.id()), version);
                        underWay.put(mine.id(), edited);
                        client.call(Records.EDIT, edited, TIMEOUT);
                        answered.put(mine.id(), edited);
                        busy.countDown();
                    }
                });
            }
            clients.submit(() -> {
                for (long version = 0; ; version++) {
                    byte[] content = content(875_000, version);
                    photos.put(sha256(content), "sent");
                    client.call(Records.UPLOAD, new Photo("held", content), TIMEOUT);
                }
            });
            busy.await();
            // as kill -9 does, with sixteen edits and a photo under way
            service.handle().destroyForcibly();
            service.handle().onExit().join();
        }
        Map<String, Entry> left = tables.entries("m1");
        assertThat(left).hasSameSizeAs(base);
        for (Entry entry : left.values()) {
            assertThat(entry)
                    .isIn(answered.get(entry.id()), underWay.getOrDefault(entry.id(), answered.get(entry.id())));
        }
        String held = tables.photos("m1").get("held");
        assertThat(held == null || photos.containsKey(held))
                .as("a whole photo, or none")
                .isTrue();
    }
}
