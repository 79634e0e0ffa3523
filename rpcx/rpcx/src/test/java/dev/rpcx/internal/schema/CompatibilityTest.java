package dev.rpcx.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Tests how two locks are compared, mostly for enums and sealed types: what an absent value is read as, and which
 * constant or case stands for an unknown one.
 */
class CompatibilityTest {
    private static List<String> breaks(String older, String newer) {
        return Compatibility.between(LockFile.parse(older, "older.lock"), LockFile.parse(newer, "newer.lock")).stream()
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
                .containsExactly("BOTH a.Role.OTHER: is new, and one side's null is the other's OTHER");
        assertThat(breaks(role("  0 NONE constant\n"), role("  0 NONE unknown\n")))
                .isEmpty();
        assertThat(breaks(role("  0 NONE unknown\n"), role("  0 NONE constant\n")))
                .containsExactly(
                        "BACKWARD a.Role.NONE: stands for itself alone now, and old peers still send it for what they"
                                + " did not know");
        assertThat(breaks(role("  0 OTHER unknown\n"), role("  0 FREE constant\n")))
                .containsExactly("BOTH a.Role.OTHER: was OTHER, is FREE, and one of the two stands for the unknown");
        assertThat(breaks(role("  0 FREE constant\n"), role("  0 NONE constant\n")))
                .isEmpty();
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

    @Test
    void aResultThatComesAsAMessageOfItsOwnIsReadAsOneWithoutFields() {
        String receipt = "message a.Receipt\n  1 id string\n";
        assertThat(breaks("message Bank/pay.reply\n" + receipt, "message Bank/pay.reply\n  0 is a.Receipt\n" + receipt))
                .containsExactly("BACKWARD Bank/pay.reply: brings a value now, and new peers read 0, false, null or"
                        + " what is empty from old ones");
    }

    @Test
    void aCaseThatOldCallersDoNotSendIsMissedUnlessSomethingStandsForIt() {
        String now = "message Bank/run.request\n  0 is a.Pet\n";
        assertThat(breaks("message Bank/run.request\n", now + pet("  1 dog a.Dog\n")))
                .containsExactly("BACKWARD Bank/run.request: takes a a.Pet now, which old callers do not send, and"
                        + " which has no case for the unknown");
        assertThat(breaks("message Bank/run.request\n", now + pet("  0 Cat unknown\n  1 dog a.Dog\n")))
                .isEmpty();
    }

    /** The number is larger than those of the fields whose kind a shape has. */
    @Test
    void aMessageOfItsOwnIsNoFieldOfAnyNumber() {
        String old = "message Bank/pay.request\n  7 amount int\n";
        String now = "message Bank/pay.request\n  0 is a.Order\n  removed 7 amount int\nmessage a.Order\n  7 sum int\n";
        assertThat(breaks(old, now))
                .containsExactly("BOTH Bank/pay.request: was a field of a message, is a message of its own");
    }

    @Test
    void aRequestThatWasAMessageOfItsOwnOnceIsReadAsThatByOldCallers() {
        String call = "message Greeter/hello.request\n";
        String gone = call + "  removed 0 is a.Key\n";
        assertThat(breaks(gone, gone + "  1 x int\n"))
                .containsExactly("BOTH Greeter/hello.request: was a message of its own once, is a field of one");
        assertThat(breaks(gone, gone)).isEmpty();
        assertThat(breaks(gone + "  1 x int\n", gone + "  1 x int\n  2 y int\n"))
                .isEmpty();
    }

    private static List<String> renamed(String before, String after) {
        return Compatibility.perhapsRenamed(LockFile.parse(before, "before"), LockFile.parse(after, "after")).stream()
                .map(each -> each.where() + ": " + each.removed() + " to " + String.join(" or ", each.added()))
                .toList();
    }

    @Test
    void whatMayHaveBeenRenamedWithItsClassIsNoted() {
        String cases = "oneof a.Shape\n  0 Other unknown\n  1 circle a.Circle\n  2 square a.Square\n";
        assertThat(renamed(
                        cases,
                        cases.replace("1 circle", "removed 1 circle") + "  3 disc a.Disc\nmessage a.Disc\n  1 r int\n"))
                .containsExactly("a.Shape: circle to disc");
        assertThat(renamed(cases, cases + "  3 disc a.Disc\n")).isEmpty();
        assertThat(renamed(cases.replace("  0 Other unknown\n", ""), cases.replace("1 circle", "removed 1 circle")))
                .isEmpty();
        String order = "message a.Order\n  1 address a.Address\n  2 total int\n";
        String types = "message a.Address\n  1 street string\n";
        String now = order.replace("1 address", "removed 1 address");
        assertThat(renamed(order + types, now + "  3 place a.Place\n" + types + "message a.Place\n  1 street string\n"))
                .containsExactly("a.Order: address to place");
        assertThat(renamed(order + types, now + "  3 place int\n" + types)).isEmpty();
    }

    /** {@code @Field} may give a field the number of another one, and the name in a line may be changed by hand. */
    @Test
    void whatHasTheNumberOfAnotherIsNoted() {
        String user = "message a.User\n  1 id string\n  2 %s\n";
        String name = user.formatted("name string");
        assertThat(renamed(name, user.formatted("email string"))).containsExactly("a.User: name to email");
        assertThat(renamed(name, user.formatted("email string") + "  was 2 name\n"))
                .as("a rename that is known")
                .isEmpty();
        assertThat(renamed(name, name)).isEmpty();
        assertThat(renamed(name, user.formatted("age int"))).isEmpty();
        assertThat(renamed(name, "message a.User\n  1 name string\n  2 id string\n"))
                .isEmpty();
        assertThat(renamed(role("  2 ADMIN constant\n"), role("  2 OWNER constant\n")))
                .containsExactly("a.Role: ADMIN to OWNER");
        assertThat(renamed(role("  0 FREE unknown\n"), role("  0 NONE unknown\n")))
                .isEmpty();
    }

    @Test
    void aParameterInThePlaceOfAnotherIsNotedAlsoWhereItBecomesOptional() {
        String call = "message Greeter/find.request\n  1 %s\n";
        String from = call.formatted("from google.protobuf.Timestamp");
        assertThat(renamed(from, call.formatted("until optional google.protobuf.Timestamp")))
                .containsExactly("Greeter/find.request: from to until");
        assertThat(renamed(from, call.formatted("until optional google.protobuf.Duration")))
                .isEmpty();
        assertThat(renamed(call.formatted("a java.util.Collection<int>"), call.formatted("b java.util.List<int>")))
                .hasSize(1);
        assertThat(renamed(call.formatted("a list string"), call.formatted("b map string string")))
                .isEmpty();
    }

    @Test
    void aCollectionWithinAnotherTypeMakesThatAnotherOne() {
        String of = "a.Result<%s>";
        String collection = of.formatted("java.util.Collection<java.lang.String>");
        String list = of.formatted("java.util.List<java.lang.String>");
        for (String field : List.of("%s", "list %s", "map string %s", "java.util.Map<java.lang.String, %s>")) {
            assertThat(breaks(user(field.formatted(collection)), user(field.formatted(list))))
                    .containsExactly(
                            "BOTH a.User.role: was " + field.formatted(collection) + ", is " + field.formatted(list));
        }
        String both = "java.util.Map<a.Result<java.util.Set<java.lang.String>>, java.util.%s<java.lang.String>>";
        assertThat(breaks(user(both.formatted("Collection")), user(both.formatted("List"))))
                .isEmpty();
    }

    @Test
    void whatASetHoldsIsComparedAlsoByThoseWhoseLockDoesNotTellItFromAList() {
        String now = user("set a.Key") + "message a.Key\n  1 a string\n  2 b string\n";
        String old = "message a.Key\n  1 a string\n";
        assertThat(breaks(user("repeated a.Key") + old, now))
                .hasSize(1)
                .allMatch(each -> each.startsWith("FORWARD a.Key.b: is new"));
        assertThat(breaks(user("repeated a.Key") + old, now.replace("set", "list")))
                .isEmpty();
    }

    @Test
    void aCollectionWithinAnotherContainerIsReadAsAList() {
        String list = "java.util.List<java.lang.String>";
        String collection = "java.util.Collection<java.lang.String>";
        assertThat(breaks(user(list), user(collection))).isEmpty();
        assertThat(breaks(user("map string " + collection), user("map string " + list)))
                .isEmpty();
        assertThat(breaks(user(collection), user("java.util.Set<java.lang.String>")))
                .hasSize(1);
    }

    /** A message that is the request itself has line 0, and its fields never meet the number that is kept. */
    @Test
    void aMessageOfItsOwnDoesNotTakeTheNumberOfAParameterThatIsGone() {
        String order = "message a.Order\n  1 sum int\n";
        String gone = "message Bank/pay.request\n  removed 1 amount int\n";
        assertThat(breaks(gone + order, "message Bank/pay.request\n  0 is a.Order\n  removed 1 amount int\n" + order))
                .containsExactly("BOTH Bank/pay.request: was a field of a message, is a message of its own");
        String whole = "message Bank/pay.request\n  0 is a.Order\n";
        assertThat(breaks(whole + order, "message Bank/pay.request\n  removed 0 is a.Order\n" + order))
                .containsExactly("FORWARD Bank/pay.request.is: is gone, and old peers read a message without fields");
        assertThat(breaks("message Bank/pay.request\n" + order, whole + order)).isEmpty();
    }

    private static final String KEY = "message a.Key\n  1 id int\n";

    private static List<String> breaksOfKey(String field) {
        String user = "message a.User\n  1 all " + field + "\n";
        return breaks(user + KEY, user + KEY + "  2 region string\n");
    }

    @Test
    void keysThatDifferInWhatOneSideDoesNotKnowAreOneForIt() {
        String line = "FORWARD a.Key.region: is new, and old peers read keys of maps and elements of sets that differ"
                + " only in it as one (expected: a new field for such a map or set)";
        for (String field : List.of(
                "map a.Key long",
                "set a.Key",
                "stream set a.Key",
                "list java.util.Set<a.Key>",
                "map string java.util.Map<a.Key,java.lang.String>",
                "map a.Pair<a.Key,a.Other> long",
                "set java.util.List<a.Pair<a.Key,a.Other>>")) {
            String pair = "message a.Pair<a.Key,a.Other>\n  1 left a.Key\n  2 right a.Other\n";
            String user = "message a.User\n  1 all " + field + "\n" + pair;
            assertThat(breaks(user + KEY, user + KEY + "  2 region string\n"))
                    .as(field)
                    .containsExactly(line);
            assertThat(breaks(user + KEY + "  2 region string\n", user + KEY + "  removed 2 region string\n"))
                    .as(field)
                    .containsExactly("BACKWARD a.Key.region: is gone, and new peers read keys of maps and elements of"
                            + " sets that differ only in it as one (expected: a new field for such a map or set)");
        }
        for (String field : List.of("map string a.Key", "list a.Key", "a.Key", "repeated a.Key")) {
            assertThat(breaksOfKey(field)).as(field).isEmpty();
        }
    }

    @Test
    void keysThatAreTheUnknownForOneSideAreOneForIt() {
        String user = "message a.User\n  1 all map a.Role long\n";
        String old = user + role("  0 OTHER unknown\n");
        assertThat(breaks(old, old + "  2 ADMIN constant\n"))
                .containsExactly("FORWARD a.Role.ADMIN: is new, and old peers read it as the unknown, so keys of maps"
                        + " and elements of sets that differ in it become one"
                        + " (expected: a new field for such a map or set)");
        assertThat(breaks(old + "  2 ADMIN constant\n", old + "  removed 2 ADMIN constant\n"))
                .containsExactly("BACKWARD a.Role.ADMIN: is gone, and new peers read it as the unknown, so keys of maps"
                        + " and elements of sets that differ in it become one"
                        + " (expected: a new field for such a map or set)");
    }

    @Test
    void aTypeThatStandsInAFileTwiceHasTheLinesOfBoth() {
        LockFile lock = LockFile.parse(KEY + "message a.B\n  1 b int\n" + KEY + "  2 region string\n", "appended");
        assertThat(lock.text())
                .isEqualTo(LockFile.parse(KEY + "  2 region string\nmessage a.B\n  1 b int\n", "one")
                        .text());
        // what one lock says of a call does not bind another one
        String call = "message a/b.request\n";
        assertThat(LockFile.parse(call + "  1 id int\n" + call + "  1 arg0 int\n", "appended")
                        .text())
                .isEqualTo(LockFile.parse(call + "  1 id int\n", "one").text());
        assertThatThrownBy(() -> LockFile.parse(KEY + "message a.Key\n  2 id int\n", "appended"))
                .hasMessageContaining("appended: a.Key")
                .hasMessageContaining("(expected: one number for ever)");
    }

    private static String pet(String lines) {
        return "oneof a.Pet\n" + lines;
    }

    private static String call(String request) {
        return "message Bank/pay.request\n  0 is " + request + "\n";
    }

    @Test
    void aClassOfAnotherNameWithTheSameMembersIsNoBreak() {
        String members = "\n  1 from string\n  2 kind %s.Kind\n  3 shape %s.Shape\n";
        String all = "enum %s.Kind\n  0 NONE unknown\n  1 GOOD constant\n"
                + "oneof %s.Shape\n  1 circle %s.Circle\nmessage %s.Circle\n  1 r int\n";
        String older = call("a.Order") + "message a.Order" + members.replace("%s", "a") + all.replace("%s", "a");
        String newer = call("b.Payment") + "message b.Payment" + members.replace("%s", "b") + all.replace("%s", "b");
        assertThat(breaks(older, newer)).isEmpty();
        assertThat(breaks(newer, older)).isEmpty();
        assertThat(renamed(older, newer)).isEmpty();
    }

    @Test
    void twoClassesThatWereWrittenSeparatelyAreComparedByNameAndNumber() {
        String client = call("a.Order") + "message a.Order\n  1 from string\n  2 to string\n";
        String server = call("b.Order") + "message b.Order\n  1 to string\n  2 from string\n";
        String end = " (expected: the number that it had)";
        assertThat(breaks(client, server))
                .containsExactly(
                        "BOTH a.Order.from (now of b.Order): was number 1, is number 2" + end,
                        "BOTH a.Order.to (now of b.Order): was number 2, is number 1" + end);
        assertThat(breaks(client, call("b.Order") + "message b.Order\n  1 from int\n  2 to string\n"))
                .containsExactly("BOTH a.Order.from (now of b.Order): was string, is int");
    }

    @Test
    void whatOnlyOneOfTwoClassesHasIsNoBreak() {
        String client = call("a.Order") + "message a.Order\n  1 from string\n";
        String server = call("b.Order") + "message b.Order\n  1 from string\n  2 to string\n  removed 3 note string\n";
        assertThat(breaks(client, server)).isEmpty();
        assertThat(breaks(server, client)).isEmpty();
    }

    @Test
    void classesAreComparedWhereverTheyStand() {
        String older = "message a.User\n  1 all %s\nmessage a.Item\n  1 x int\n  2 y int\n"
                + "message a.Page<a.Item>\n  1 items list a.Item\n";
        String newer = "message a.User\n  1 all %s\nmessage b.Item\n  1 y int\n  2 x int\n"
                + "message b.Page<b.Item>\n  1 items list b.Item\n";
        for (String field : List.of(
                "%s.Item",
                "optional %s.Item",
                "list %s.Item",
                "map string %s.Item",
                "map %s.Item string",
                "list java.util.Map<java.lang.String,java.util.List<%s.Item>>",
                "%s.Page<%s.Item>")) {
            assertThat(breaks(older.formatted(field.replace("%s", "a")), newer.formatted(field.replace("%s", "b"))))
                    .as(field)
                    .containsExactly(
                            "BOTH a.Item.x (now of b.Item): was number 1, is number 2 (expected: the number that it"
                                    + " had)",
                            "BOTH a.Item.y (now of b.Item): was number 2, is number 1 (expected: the number that it"
                                    + " had)");
        }
        assertThat(breaks(older.formatted("list a.Item"), newer.formatted("map string b.Item")))
                .containsExactly("BOTH a.User.all: was list a.Item, is map string b.Item");
        assertThat(breaks(older.formatted("a.Item"), newer.formatted("b.Gone")))
                .containsExactly("BOTH a.User.all: was a.Item, is b.Gone");
    }

    @Test
    void aClassThatContainsItselfIsComparedOnce() {
        String older = call("a.Tree") + "message a.Tree\n  1 left a.Tree\n  2 all list a.Tree\n";
        String newer = call("b.Tree") + "message b.Tree\n  1 left b.Tree\n  2 all set b.Tree\n";
        assertThat(breaks(older, newer))
                .containsExactly("BACKWARD a.Tree.all (now of b.Tree): was list a.Tree, is set b.Tree, and of those"
                        + " that are equal one is kept");
    }

    @Test
    void aMessageIsNoEnumOfAnotherName() {
        assertThat(breaks(
                        "message a.User\n  1 role a.Role\n" + role(""),
                        "message a.User\n  1 role b.Role\nmessage b.Role\n  1 GUEST int\n"))
                .containsExactly("BOTH a.User.role: was a.Role, is b.Role");
    }

    @Test
    void aNameThatStandsAtTheNumberOfAnotherClassesIsNoted() {
        assertThat(renamed(
                        call("a.Order") + "message a.Order\n  1 from string\n  2 sum int\n",
                        call("b.Order") + "message b.Order\n  1 sender string\n  2 sum int\n"))
                .containsExactly("a.Order (now b.Order): from to sender");
    }

    @Test
    void eachNewNameThatMayBeThatOfAMemberThatIsGoneIsSaid() {
        String order = "message a.Order\n  1 id int\n  2 count int\n";
        String now = "message a.Order\n  1 id int\n  removed 2 count int\n";
        assertThat(renamed(order, now + "  3 total long\n  4 note string\n  5 sum optional int\n"))
                .containsExactly("a.Order: count to total or sum");
        assertThat(renamed(order, now)).isEmpty();
        assertThat(renamed(order, now.replace("1 id", "3 id")))
                .as("a member that has moved is not new")
                .isEmpty();
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
