package dev.parley.work.lecturers;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.NestedProfile;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Reads what its role says. It asks Redis before MySQL; what Redis does not have is read from MySQL and put into Redis.
 */
final class ProfilesNode implements Work.Node {
    private static final String FLAT = "parley:flat:";
    private static final String NESTED = "parley:nested:";
    private static final String BY_ID = "parley:id:";
    private static final int MAX_NAME_CHARACTERS = 100;

    private final Role role;
    private final MySql mysql;
    private final Cache cache;
    private final String callee;
    private final Neighbour authentication;
    private final Duration timeout;

    ProfilesNode(Role role, MySql mysql, Cache cache, String callee, Neighbour authentication, Duration timeout) {
        this.role = role;
        this.mysql = mysql;
        this.cache = cache;
        this.callee = callee;
        this.authentication = authentication;
        this.timeout = timeout;
    }

    /** All keys that can be in the cache. */
    static List<String> keys() {
        return Stream.concat(
                        IntStream.range(0, People.COUNT).boxed().flatMap(nr -> Stream.of(FLAT + nr, NESTED + nr)),
                        People.all().flat().stream().map(profile -> BY_ID + profile.id_sdm()))
                .toList();
    }

    /** Puts into the cache all that is asked for by number, and takes out what was asked for otherwise. */
    static void fill(Cache cache, Role role) {
        cache.forget(keys());
        List<NestedProfile> people = People.all().nested();
        if (role.hasFlat()) {
            cache.put(rows(FLAT, people.stream().map(People::withoutEducation).toList()));
        }
        if (role.hasNested()) {
            cache.put(rows(NESTED, people));
        }
    }

    private static Map<String, byte[]> rows(String prefix, List<NestedProfile> people) {
        Map<String, byte[]> rows = LinkedHashMap.newLinkedHashMap(people.size());
        for (int nr = 0; nr < people.size(); nr++) {
            rows.put(prefix + nr, Rows.encode(people.get(nr)));
        }
        return rows;
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        return operation
                .reply()
                .cast(
                        switch (request) {
                            case Credentials credentials -> ask(Lecturers.AUTHENTICATE, credentials);
                            case Token token -> ask(Lecturers.CHECK, token);
                            case Page page when isServed(operation) -> isFlat(operation) ? flat(page) : nested(page);
                            case ProfileAsked asked when role.hasFlat() -> profile(asked);
                            case NameAsked asked when role.hasFlat() -> named(asked);
                            default ->
                                throw new CallException(
                                        Code.NOT_FOUND,
                                        "no operation " + operation.name() + " at a service of "
                                                + Lecturers.CONTRACT.name() + " that is for "
                                                + role.name().toLowerCase(Locale.ROOT));
                        });
    }

    private boolean isServed(Operation<?, ?> operation) {
        return isFlat(operation) ? role.hasFlat() : role.hasNested();
    }

    private static boolean isFlat(Operation<?, ?> operation) {
        return operation.name().equals(Lecturers.FLAT.name());
    }

    private <Q extends Record, R extends Record> R ask(Operation<Q, R> operation, Q request) {
        try {
            return authentication.call(operation, request, timeout);
        } catch (CallException e) {
            throw new CallException(e.code(), callee + ": " + e.getMessage(), e);
        }
    }

    private void check(String token) {
        ask(Lecturers.CHECK, new Token(token));
    }

    private Profiles flat(Page page) {
        return new Profiles(read(page, FLAT, false).stream().map(People::flat).toList());
    }

    private NestedProfiles nested(Page page) {
        return new NestedProfiles(read(page, NESTED, true));
    }

    private List<NestedProfile> read(Page page, String prefix, boolean withEducation) {
        check(page.token());
        if (page.from() < 0) {
            throw new CallException(Code.INVALID, "from: " + page.from() + " (expected: 0 or more)");
        }
        if (page.count() < 1 || page.count() > People.COUNT) {
            throw new CallException(Code.INVALID, "count: " + page.count() + " (expected: 1 to " + People.COUNT + ")");
        }
        int until = (int) Math.min(People.COUNT, (long) page.from() + page.count());
        if (page.from() >= until) {
            return List.of();
        }
        List<String> keys =
                IntStream.range(page.from(), until).mapToObj(nr -> prefix + nr).toList();
        List<byte[]> cached = cache.get(keys);
        List<NestedProfile> profiles = new ArrayList<>(keys.size());
        int missing = 0;
        for (byte[] row : cached) {
            if (row == null) {
                missing++;
            } else {
                profiles.add(Rows.decode(row));
            }
        }
        if (missing == 0) {
            return profiles;
        }
        Map<Integer, NestedProfile> read = mysql.page(page.from(), until - page.from(), withEducation);
        Map<String, byte[]> rows = LinkedHashMap.newLinkedHashMap(read.size());
        read.forEach((nr, profile) -> rows.put(prefix + nr, Rows.encode(profile)));
        cache.put(rows);
        return List.copyOf(read.values());
    }

    private Profile profile(ProfileAsked asked) {
        check(asked.token());
        String id = canonical(asked.id_sdm());
        byte[] row = cache.get(BY_ID + id);
        if (row != null) {
            return People.flat(Rows.decode(row));
        }
        NestedProfile profile =
                mysql.withId(id).orElseThrow(() -> new CallException(Code.NOT_FOUND, "no lecturer with id_sdm " + id));
        cache.put(Map.of(BY_ID + id, Rows.encode(profile)));
        return People.flat(profile);
    }

    private static String canonical(String id) {
        try {
            return UUID.fromString(id).toString();
        } catch (IllegalArgumentException e) {
            throw new CallException(Code.INVALID, "id_sdm: " + id + " (expected: a UUID)", e);
        }
    }

    private Profiles named(NameAsked asked) {
        check(asked.token());
        if (asked.nama_sdm().isEmpty() || asked.nama_sdm().length() > MAX_NAME_CHARACTERS) {
            throw new CallException(
                    Code.INVALID,
                    "nama_sdm: " + asked.nama_sdm().length() + " characters (expected: 1 to " + MAX_NAME_CHARACTERS
                            + ")");
        }
        return new Profiles(
                mysql.named(asked.nama_sdm()).stream().map(People::flat).toList());
    }

    @Override
    public Map<String, Double> figures() {
        Map<String, Double> figures = new TreeMap<>(mysql.figures());
        figures.put("cache_hits_total", (double) cache.hits());
        figures.put("cache_misses_total", (double) cache.misses());
        return figures;
    }

    @Override
    public void close() {
        cache.close();
        mysql.close();
    }
}
