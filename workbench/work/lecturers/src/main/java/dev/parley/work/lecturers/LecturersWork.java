package dev.parley.work.lecturers;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * {@code flat:n} asks for n profiles, {@code nested:n} for n with their education. A service without neighbours
 * authenticates; one with neighbours reads profiles and has the first of them check the token of each request. Of
 * services named {@code flat} and {@code nested} each reads only what its name says, and clients reach whichever stands
 * first; one of another name reads both. Each has databases of its own. Source: niswar, section IV.
 */
public final class LecturersWork implements Work {
    static final String MYSQL = "mysql";
    static final String REDIS = "redis";
    /** The one account there is. */
    static final String USER = "reader";

    static final String PASSWORD = "a password for measurements";

    /**
     * How long a service waits for its neighbour: of 500 requests that come at once, the last have to wait for all the
     * others.
     */
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    @Override
    public String name() {
        return Lecturers.CONTRACT.name();
    }

    @Override
    public Contract contract() {
        return Lecturers.CONTRACT;
    }

    @Override
    public List<String> backends() {
        return List.of(MYSQL, REDIS);
    }

    @Override
    public boolean hasBackendsEach() {
        return true;
    }

    /**
     * Fills the tables and the caches. Source: niswar, section IV: "Redis exported the SISTER data from the MySQL
     * database".
     */
    @Override
    public void prepare(Topology topology, Function<Topology.Node, Map<String, Location>> backends) {
        for (Topology.Node service : topology.nodes()) {
            Map<String, Location> own = backends.apply(service);
            Role role = Role.of(service);
            if (role == Role.AUTHENTICATION) {
                MySql.prepareAccounts(backend(own, MYSQL));
            } else {
                MySql.prepareProfiles(backend(own, MYSQL), People.all(), role.hasNested());
                try (Cache cache = new Cache(backend(own, REDIS))) {
                    ProfilesNode.fill(cache, role);
                }
            }
        }
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours) {
        throw new BadInput("backends of " + self.name(), "none", MYSQL + " and " + REDIS);
    }

    @Override
    public Node node(Topology.Node self, Map<String, Neighbour> neighbours, Map<String, Location> backends) {
        Location mysql = backend(backends, MYSQL);
        Location redis = backend(backends, REDIS);
        Role role = Role.of(self);
        if (role == Role.AUTHENTICATION) {
            return new AuthenticationNode(new MySql(mysql), new Cache(redis));
        }
        String callee = self.calls().getFirst();
        Neighbour authentication = neighbours.get(callee);
        if (authentication == null) {
            throw new BadInput("neighbours of " + self.name(), neighbours.keySet(), "also " + callee);
        }
        return new ProfilesNode(role, new MySql(mysql), new Cache(redis), callee, authentication, TIMEOUT);
    }

    private static Location backend(Map<String, Location> backends, String name) {
        Location at = backends.get(name);
        if (at == null) {
            throw new BadInput("backend", backends.keySet(), "also " + name);
        }
        return at;
    }

    @Override
    public Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed) {
        int count = Math.max(1, message.size());
        if (count > People.COUNT) {
            throw new BadInput("message", message, "at most " + People.COUNT + " profiles");
        }
        if (topology.entry().isLeaf()) {
            throw new BadInput("topology", topology.text(), "one with a service behind the first: it authenticates");
        }
        Role role = Role.of(asked);
        if (role == Role.AUTHENTICATION) {
            return new Login();
        }
        boolean isFlat = isFlat(message);
        if (isFlat ? role.hasFlat() : role.hasNested()) {
            return pages(isFlat, count, seed);
        }
        if (asked.equals(topology.entry())) {
            throw new BadInput(
                    "message",
                    message + " for " + topology.text() + ", whose first service is " + asked.name(),
                    (isFlat ? "nested" : "flat") + ":n, or a topology whose first service is " + message.kind());
        }
        // clients send nothing to this service: the exchange only shows that it answers
        return pages(role.hasFlat(), 1, seed);
    }

    private static boolean isFlat(MessageSpec message) {
        return switch (message.kind()) {
            case "flat" -> true;
            case "nested" -> false;
            default -> throw new BadInput("message", message, "flat:n or nested:n (profiles), such as flat:100");
        };
    }

    private static Exchange<?, ?> pages(boolean isFlat, int count, long seed) {
        return isFlat
                ? new Pages<>(
                        Lecturers.FLAT,
                        count,
                        seed,
                        (from, n) -> new Profiles(People.page(People.all().flat(), from, n)),
                        Read::of)
                : new Pages<>(
                        Lecturers.NESTED,
                        count,
                        seed,
                        (from, n) -> new NestedProfiles(People.page(People.all().nested(), from, n)),
                        Read::of);
    }

    /** Asks for pages all over the table, each time with the token that the client got before its first request. */
    private static final class Pages<R extends Record> implements Exchange<Page, R> {
        private final Operation<Page, R> operation;
        private final int count;
        private final long seed;
        private final BiFunction<Integer, Integer, R> expected;
        private final UnaryOperator<R> read;
        private volatile String token = "";

        /** @param read what is left of a reply whose client asks only for what it reads */
        Pages(
                Operation<Page, R> operation,
                int count,
                long seed,
                BiFunction<Integer, Integer, R> expected,
                UnaryOperator<R> read) {
            this.read = read;
            this.operation = operation;
            this.count = count;
            this.seed = seed;
            this.expected = expected;
        }

        @Override
        public void enter(Neighbour service, Duration timeout) {
            token = service.call(Lecturers.AUTHENTICATE, new Credentials(USER, PASSWORD), timeout)
                    .token();
        }

        @Override
        public Operation<Page, R> operation() {
            return operation;
        }

        @Override
        public Page request(long index) {
            // this step reaches every place before it reaches any of them again
            long step = (seed + index) * 1_009;
            return new Page(token, (int) Math.floorMod(step, People.COUNT - count + 1L), count);
        }

        @Override
        public boolean isRight(Page request, R reply) {
            R whole = expected.apply(request.from(), request.count());
            return whole.equals(reply) || read.apply(whole).equals(reply);
        }
    }

    private static final class Login implements Exchange<Credentials, Token> {
        @Override
        public Operation<Credentials, Token> operation() {
            return Lecturers.AUTHENTICATE;
        }

        @Override
        public Credentials request(long index) {
            return new Credentials(USER, PASSWORD);
        }

        @Override
        public boolean isRight(Credentials request, Token reply) {
            return AuthenticationNode.isToken(reply.token());
        }
    }
}
