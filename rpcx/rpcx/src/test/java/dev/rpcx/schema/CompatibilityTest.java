package dev.rpcx.schema;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Enums and sealed types in two locks: what absent is read as, and what stands for the unknown. */
class CompatibilityTest {
    private static List<String> breaks(String older, String newer) {
        return Compatibility.between(Lock.parse(older, "older.lock"), Lock.parse(newer, "newer.lock")).stream()
                .map(Compatibility.Break::toString)
                .toList();
    }

    private static String user(String type) {
        return "message a.User\n  1 role " + type + "\n";
    }

    private static String role(String zero) {
        return "enum a.Role\n" + zero + "  1 GUEST constant\n";
    }

    @Test
    void aNullOfOneSideIsTheConstantOfNumberZeroOfTheOther() {
        for (String zero : List.of("  0 ADMIN constant\n", "  0 ADMIN unknown\n")) {
            String one = user("a.Role") + role(zero);
            String optional = user("optional a.Role") + role(zero);
            assertThat(breaks(one, optional))
                    .containsExactly("BOTH a.User.role: was a.Role, is optional a.Role, and one side's null is the"
                            + " other's ADMIN");
            assertThat(breaks(optional, one))
                    .containsExactly("BOTH a.User.role: was optional a.Role, is a.Role, and one side's null is the"
                            + " other's ADMIN");
        }
    }

    @Test
    void withoutANumberZeroAbsentIsNullOnBothSides() {
        for (String zero : List.of("", "  removed 0 ADMIN constant\n")) {
            assertThat(breaks(user("a.Role") + role(zero), user("optional a.Role") + role(zero)))
                    .isEmpty();
            assertThat(breaks(user("optional a.Role") + role(zero), user("a.Role") + role(zero)))
                    .isEmpty();
        }
    }

    @Test
    void aConstantThatGetsOrLosesNumberZeroTakesThePlaceOfNull() {
        assertThat(breaks(role(""), role("  0 FREE constant\n")))
                .containsExactly("BOTH a.Role.FREE: is new, and one side's null is the other's FREE");
        assertThat(breaks(role("  0 FREE constant\n"), role("  removed 0 FREE constant\n")))
                .containsExactly("BOTH a.Role.FREE: is gone, and one side's null is the other's FREE");
    }

    @Test
    void whatComesToStandForTheUnknownIsNullForThoseWhoDoNotHaveIt() {
        assertThat(breaks(role(""), role("  0 OTHER unknown\n")))
                .containsExactly(
                        "FORWARD a.Role.OTHER: is new, and where it is sent old peers read null, or refuse it");
        assertThat(breaks(pet("  1 dog a.Dog\n"), pet("  0 Fish unknown\n  1 dog a.Dog\n")))
                .containsExactly("FORWARD a.Pet.Fish: is new, and where it is sent old peers read null, or refuse it");
        assertThat(breaks(role("  0 OTHER unknown\n"), role("  0 NONE unknown\n")))
                .isEmpty();
    }

    @Test
    void aResultThatComesOrGoesIsReadAsWhatAbsentStandsFor() {
        String nothing = "message Bank/transfer.reply\n";
        String gone = nothing + "  removed 1 value bool\n";
        String something = nothing + "  1 value bool\n";
        assertThat(breaks(something, gone))
                .containsExactly("FORWARD Bank/transfer.reply: brings nothing any more, and old peers read 0, false,"
                        + " null or what is empty");
        assertThat(breaks(nothing, something))
                .containsExactly(
                        "BACKWARD Bank/transfer.reply: brings a value now, and new peers read 0, false, null or"
                                + " what is empty from old ones");
        assertThat(breaks(nothing, gone)).isEmpty();
    }

    private static String pet(String lines) {
        return "oneof a.Pet\n" + lines;
    }

    @Test
    void whatStandsForTheUnknownIsNoOtherCase() {
        String end = " (expected: the number that it had)";
        String one = pet("  0 Cat unknown\n  1 dog a.Dog\n");
        assertThat(breaks(one, pet("  0 Dog unknown\n  removed 1 dog a.Dog\n  2 cat a.Cat\n")))
                .containsExactlyInAnyOrder(
                        "BOTH a.Pet.Cat: was number 0, is number 2" + end,
                        "BOTH a.Pet.Dog: was number 1, is number 0" + end);
        assertThat(breaks(one, pet("  0 Fish unknown\n  1 dog a.Dog\n  2 cat a.Cat\n")))
                .containsExactly("BOTH a.Pet.Cat: was number 0, is number 2" + end);
        assertThat(breaks(one, pet("  0 Dog unknown\n  removed 1 dog a.Dog\n")))
                .containsExactly("BOTH a.Pet.Dog: was number 1, is number 0" + end);
        assertThat(breaks(one, pet("  0 Fish unknown\n  1 dog a.Dog\n"))).isEmpty();
    }
}
