package dev.parley.work.records;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.Nothing;
import dev.parley.spi.records.Photo;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.Records;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.function.BiPredicate;
import java.util.function.Function;
import java.util.function.LongFunction;

/**
 * {@code list}, {@code add}, {@code edit}, {@code delete} of records, {@code upload:n} and {@code download:n} of photos
 * of n bytes, which are 875 000 if nothing else is said. {@code edit} and {@code delete} take the record that
 * {@code add} of the same index added, so they follow it in a scenario: {@code list>add>edit>delete}. Services without
 * neighbours store; the others pass on.
 */
public final class RecordsWork implements Work {
    private static final String POSTGRES = "postgres";
    /**
     * How long a service waits for its neighbour: iwanowski's table 5 has means of more than 7 s, so that 5 s would be
     * another experiment. Source: Spring Cloud OpenFeign 3.1, Request.Options: readTimeout of 60 s by default.
     */
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private static final int MAX_PHOTO_BYTES = 10_000_000;

    @Override
    public String name() {
        return Records.CONTRACT.name();
    }

    @Override
    public Contract contract() {
        return Records.CONTRACT;
    }

    @Override
    public List<String> backends() {
        return List.of(POSTGRES);
    }

    @Override
    public void prepare(Topology topology, Function<Topology.Node, Map<String, Location>> backends) {
        topology.nodes().stream()
                .filter(Topology.Node::isLeaf)
                .forEach(leaf -> Postgres.prepare(postgres(backends.apply(leaf)), leaf.name()));
    }

    /** A photo is fetched from the first neighbour alone. */
    @Override
    public boolean callsEachNeighbourOnce(Topology.Node self) {
        return self.calls().size() <= 1;
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours) {
        return node(self, neighbours, Map.of());
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours, Map<String, Location> backends) {
        return self.isLeaf()
                ? new StoringNode(new Postgres(postgres(backends), self.name()))
                : new PassingNode(self, neighbours, TIMEOUT);
    }

    private static Location postgres(Map<String, Location> backends) {
        Location at = backends.get(POSTGRES);
        if (at == null) {
            throw new BadInput("backends", backends.keySet(), "also " + POSTGRES);
        }
        return at;
    }

    @Override
    public Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed) {
        int bytes = message.size() == 0 ? Contents.PHOTO_BYTES : message.size();
        if (bytes > MAX_PHOTO_BYTES) {
            throw new BadInput("message", message, "photos of at most " + MAX_PHOTO_BYTES + " bytes");
        }
        return switch (message.kind()) {
            case "list" -> new Simple<>(Records.ALL, index -> new Nothing(), RecordsWork::hasBase);
            case "add" -> new Simple<>(Records.ADD, index -> Contents.entry(seed, index, 0), Entry::equals);
            case "edit" -> new Simple<>(Records.EDIT, index -> Contents.entry(seed, index, 1), Entry::equals);
            case "delete" ->
                new Simple<>(Records.DELETE, index -> new EntryId(Contents.id(seed, index)), EntryId::equals);
            case "upload" -> {
                Contents.Album album = Contents.album(bytes);
                yield new Simple<>(
                        Records.UPLOAD,
                        index -> album.photos().get(Math.floorMod(index, Contents.PHOTOS)),
                        (photo, reply) ->
                                album.stored().contains(reply) && reply.name().equals(photo.name()));
            }
            case "download" -> {
                List<Photo> photos = Contents.album(bytes).photos();
                yield new Simple<>(
                        Records.DOWNLOAD,
                        index -> new PhotoName(Contents.photoName(index, bytes)),
                        (name, reply) -> reply.name().equals(name.name()) && photos.contains(reply));
            }
            default ->
                throw new BadInput("message", message, "list, add, edit, delete, upload:n or download:n (bytes)");
        };
    }

    /** All that nobody changes is there, unchanged; what others add and delete may be there or not. */
    private static boolean hasBase(Nothing nothing, Entries entries) {
        return new HashSet<>(entries.entries()).containsAll(Contents.base());
    }

    private record Simple<Q extends Record, R extends Record>(
            Operation<Q, R> operation, LongFunction<Q> requests, BiPredicate<Q, R> right) implements Exchange<Q, R> {
        @Override
        public Q request(long index) {
            return requests.apply(index);
        }

        @Override
        public boolean isRight(Q request, R reply) {
            return right.test(request, reply);
        }
    }
}
