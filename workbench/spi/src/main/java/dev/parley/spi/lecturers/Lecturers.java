package dev.parley.spi.lecturers;

import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import dev.parley.spi.Operation.Kind;
import java.util.List;

/**
 * Operations of the work {@code lecturers}. All but {@link #AUTHENTICATE} need a token, which that operation gives. A
 * client reads names and degrees, as for a list of persons with their titles.
 */
public final class Lecturers {
    public static final Operation<Credentials, Token> AUTHENTICATE =
            new Operation<>("authenticate", Kind.MUTATION, Credentials.class, Token.class);
    /** The other services ask this of the authentication service. */
    public static final Operation<Token, Checked> CHECK =
            new Operation<>("check", Kind.QUERY, Token.class, Checked.class);

    public static final Operation<Page, Profiles> FLAT = new Operation<>(
            "flat", Kind.QUERY, Page.class, Profiles.class, List.of("profiles.id_sdm", "profiles.nama_sdm"));
    public static final Operation<Page, NestedProfiles> NESTED = new Operation<>(
            "nested",
            Kind.QUERY,
            Page.class,
            NestedProfiles.class,
            List.of(
                    "profiles.id_sdm",
                    "profiles.nama_sdm",
                    "profiles.pendidikan_formal.jenjang_pendidikan",
                    "profiles.pendidikan_formal.gelar_akademik"));
    public static final Operation<ProfileAsked, Profile> PROFILE =
            new Operation<>("profile", Kind.QUERY, ProfileAsked.class, Profile.class);
    public static final Operation<NameAsked, Profiles> NAMED =
            new Operation<>("named", Kind.QUERY, NameAsked.class, Profiles.class);

    public static final Contract CONTRACT =
            new Contract("lecturers", List.of(AUTHENTICATE, CHECK, FLAT, NESTED, PROFILE, NAMED));

    private Lecturers() {}
}
