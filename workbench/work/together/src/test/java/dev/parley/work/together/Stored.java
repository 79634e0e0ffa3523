package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.spi.Neighbour;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import dev.parley.spi.records.StoredPhoto;
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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** What clients change and send, and what the tables must then hold. */
final class Stored {
    private static final int OPERATIONS = Integer.getInteger("parley.operations", 500);
    private static final int CLIENTS = 50;
    static final Duration TIMEOUT = Duration.ofSeconds(20);

    private final Tables tables;

    private Stored(Tables tables) {
        this.tables = tables;
    }

    /** Its services use a PostgreSQL that is started if need be. */
    static Stored inPostgres() throws InterruptedException {
        RealServers.start("postgres");
        return new Stored(new Tables(RealServers.port("postgres")));
    }

    Tables tables() {
        return tables;
    }

    static Entry entry(UUID id, long seed) {
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

    /** After many changes by fifty clients, each table is what a model says. */
    void changeAndCompare(String technology, Neighbour service, List<String> leaves) throws Exception {
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

    static String sha256(byte[] content) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content));
    }

    static byte[] content(int bytes, long seed) {
        byte[] content = new byte[bytes];
        new Random(seed).nextBytes(content);
        return content;
    }

    /** Photos have one checksum: at the client, in the tables, and on the way back. */
    void sendAndFetch(Neighbour service, List<String> leaves) throws Exception {
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
}
