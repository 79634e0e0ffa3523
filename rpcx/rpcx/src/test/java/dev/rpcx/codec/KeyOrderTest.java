package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.ParameterizedType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests keys of which many can have the same hash. The keys that the JDK's hash tables cannot find by their order are
 * counted.
 */
class KeyOrderTest {
    static Stream<Shape> shapes() {
        return Stream.concat(Arrays.stream(Scalar.values()), Arrays.stream(WellKnown.values()));
    }

    private static Class<?> classOf(Shape shape) {
        if (shape instanceof Scalar scalar) {
            return switch (scalar) {
                case BOOL -> Boolean.class;
                case BYTE -> Byte.class;
                case SHORT -> Short.class;
                case CHAR -> Character.class;
                case INT -> Integer.class;
                case LONG -> Long.class;
                case FLOAT -> Float.class;
                case DOUBLE -> Double.class;
                case STRING -> String.class;
                // bytes cannot be a key
                case BYTES -> Integer.class;
                case BIG_INTEGER -> BigInteger.class;
                case UUID -> UUID.class;
                case URI -> URI.class;
            };
        }
        return switch ((WellKnown) shape) {
            case INSTANT -> Instant.class;
            case DURATION -> Duration.class;
            case DECIMAL -> BigDecimal.class;
            case LOCAL_DATE -> LocalDate.class;
            case LOCAL_DATE_TIME -> LocalDateTime.class;
            case DATE -> Date.class;
            case LOCAL_TIME -> LocalTime.class;
            case OFFSET_DATE_TIME -> OffsetDateTime.class;
            case ZONED_DATE_TIME -> ZonedDateTime.class;
        };
    }

    /** Returns whether {@code HashMap} treats the values as comparable. */
    private static boolean isComparable(Class<?> type) {
        return Arrays.stream(type.getGenericInterfaces())
                .anyMatch(face -> face instanceof ParameterizedType with
                        && with.getRawType() == Comparable.class
                        && with.getActualTypeArguments()[0] == type);
    }

    @ParameterizedTest
    @MethodSource("shapes")
    void whatHasAnOrderIsFoundByIt(Shape shape) {
        if (ElementCodec.of(shape, new ElementCodec.MessageLink()).hasOrder()) {
            assertThat(isComparable(classOf(shape))).isTrue();
        }
    }

    record Times(Set<LocalDateTime> times) {}

    /** It is encoded as the same bytes as the record with the set. */
    record TimesInAList(List<LocalDateTime> times) {}

    /** Returns times with the same hash. A later day adds to the hash, and other nanoseconds compensate for that. */
    private static List<LocalDateTime> ofOneHash(int count) {
        List<LocalDateTime> times = new ArrayList<>();
        LocalDateTime first = LocalDateTime.of(2000, 1, 1, 0, 0);
        int hash = first.hashCode();
        for (long high = 0; times.size() < count; high++) {
            // the hash of a time contains the hash of its nanoseconds of the day, folded to 32 bits
            for (int day = 1; day <= 28 && times.size() < count; day++) {
                LocalDate date = LocalDate.of(2000, 1, day);
                long nanos = high << 32 | Integer.toUnsignedLong(hash ^ date.hashCode() ^ (int) high);
                if (nanos >= 0 && nanos < 86_400_000_000_000L) {
                    LocalDateTime time = date.atStartOfDay().plusNanos(nanos);
                    if (time.hashCode() == hash) {
                        times.add(time);
                    }
                }
            }
        }
        return times;
    }

    @Test
    void timesOfOneHashAreRefusedBeforeTheyKeepAProcessorBusy() {
        assertIsRefused(Times.class, new TimesInAList(ofOneHash(20_000)));
    }

    /** Two points have the same hash if {@code 31 * a + b} is the same. */
    record Point(int a, int b) {}

    record Twos(Set<Set<Point>> all) {}

    record Threes(Set<Set<Set<Point>>> all) {}

    record Fours(Set<Set<Set<Set<Point>>>> all) {}

    record Node(String name, Set<Node> children) {}

    record Keyed(Map<Map<Set<Point>, Integer>, Integer> all) {}

    // these have the same bytes: a value that is refused would take as long to make as to read
    record TwosInLists(List<List<Point>> all) {}

    record ThreesInLists(List<List<List<Point>>> all) {}

    record FoursInLists(List<List<List<List<Point>>>> all) {}

    record Points(List<Point> all) {}

    record Inner(Points key, int value) {}

    record Inners(List<Inner> all) {}

    record Outer(Inners key, int value) {}

    record KeyedInLists(List<Outer> all) {}

    private static Point point(int of) {
        return new Point(of, 31 * (64 - of));
    }

    /** Returns this many values with the same hash. The last value differs with the variant. */
    private static List<Object> lists(int levels, int variant, int count) {
        List<Object> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int of = i < count - 1 ? i : count - 1 + variant;
            all.add(levels == 1 ? point(of) : lists(levels - 1, of, count));
        }
        return all;
    }

    private static Set<Object> sets(List<?> lists) {
        Set<Object> all = new LinkedHashSet<>();
        lists.forEach(one -> all.add(one instanceof List<?> inner ? sets(inner) : one));
        return all;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Stream<Arguments> fewOfOneHash() {
        return Stream.of(
                Arguments.of(new Twos((Set) sets(lists(2, 0, 20)))),
                Arguments.of(new Threes((Set) sets(lists(3, 0, 8)))),
                Arguments.of(new Fours((Set) sets(lists(4, 0, 4)))));
    }

    /** The numbers of equal hashes at the levels multiply. A few of them do no harm. */
    @ParameterizedTest
    @MethodSource("fewOfOneHash")
    void aFewOfOneHashComeBack(Object value) {
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(value.getClass()).write(value, out);
        assertThat(codecs.value(value.getClass()).read(out)).isEqualTo(value);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Stream<Arguments> setsInSets() {
        return Stream.of(
                Arguments.of(Twos.class, new TwosInLists((List) lists(2, 0, 50))),
                Arguments.of(Threes.class, new ThreesInLists((List) lists(3, 0, 31))),
                Arguments.of(Fours.class, new FoursInLists((List) lists(4, 0, 16))));
    }

    @ParameterizedTest
    @MethodSource("setsInSets")
    void setsOfSetsAreCountedHoweverSmallEachIs(Class<?> type, Object sameBytes) {
        assertIsRefused(type, sameBytes);
    }

    private static void assertIsRefused(Class<?> type, Object sameBytes) {
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(sameBytes.getClass()).write(sameBytes, out);
        assertThatThrownBy(() -> codecs.value(type).read(out))
                .isInstanceOf(CodecException.class)
                .hasMessageContaining("the same hash");
    }

    record Numbers(Set<Set<Integer>> all) {}

    record NumbersInLists(List<List<Integer>> all) {}

    record Named(Map<Map<String, Integer>, Integer> all) {}

    record Name(String key, int value) {}

    record Names(List<Name> all) {}

    record NamedEntry(Names key, int value) {}

    record NamedInLists(List<NamedEntry> all) {}

    /** Returns this many sets of this many numbers. All sets have the same sum, which is the hash of a set. */
    private static NumbersInLists numbers(int sets, int each) {
        List<List<Integer>> all = new ArrayList<>();
        for (int set = 1; set <= sets; set++) {
            List<Integer> one = new ArrayList<>(IntStream.range(2, each).boxed().toList());
            one.add(1_000_000 + set);
            one.add(1_000_000 - set);
            all.add(one);
        }
        return new NumbersInLists(all);
    }

    /**
     * Returns this many maps of this many names. In each map, another choice of the first eight names is replaced by
     * names with the same hash.
     */
    private static NamedInLists names(int maps, int each) {
        List<NamedEntry> all = new ArrayList<>();
        for (int map = 0; map < maps; map++) {
            List<Name> one = new ArrayList<>();
            for (int i = 0; i < each; i++) {
                one.add(new Name((map >> i & 1) == 0 || i >= Byte.SIZE ? "Aa" + i : "BB" + i, 1));
            }
            all.add(new NamedEntry(new Names(one), 1));
        }
        return new NamedInLists(all);
    }

    /** Looking up each element of a set costs more than its byte or two. */
    @Test
    void keysOfSetsThatAreFoundByTheirOrderAreCountedToo() {
        assertIsRefused(Numbers.class, numbers(200, 100));
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(NumbersInLists.class).write(numbers(20, 20), out);
        Numbers read = (Numbers) codecs.value(Numbers.class).read(out);
        assertThat(read.all()).hasSize(20);
        assertThat(read.all().stream().map(Set::hashCode).distinct()).hasSize(1);
        assertIsRefused(Named.class, names(200, 100));
        out.clear();
        codecs.value(NamedInLists.class).write(names(20, 20), out);
        Named named = (Named) codecs.value(Named.class).read(out);
        assertThat(named.all()).hasSize(20);
        assertThat(named.all().keySet().stream().map(Map::hashCode).distinct()).hasSize(1);
    }

    record Line(int amount, int price) {}

    record Cart(int a, int b, List<Line> lines) {}

    record Carts(Set<Cart> all, String unused) {}

    record CartsByKey(Map<Cart, Boolean> all, String unused) {}

    record CartEntry(Cart key, boolean value) {}

    // these have the same bytes
    record CartsInAList(List<Cart> all, String unused) {}

    record CartEntries(List<CartEntry> all, String unused) {}

    private static List<Cart> carts(int count, int lines) {
        List<Line> empty = Collections.nCopies(lines, new Line(0, 0));
        return IntStream.range(0, count)
                .mapToObj(i -> new Cart(i, -31 * i, empty))
                .toList();
    }

    /** A line of two bytes is compared like a longer one. */
    @Test
    void whatTakesNoBytesIsComparedAllTheSame() {
        String padding = "x".repeat(3_900_000);
        List<Cart> many = carts(1_000, 100);
        assertIsRefused(Carts.class, new CartsInAList(many, padding));
        assertIsRefused(
                CartsByKey.class,
                new CartEntries(
                        many.stream().map(cart -> new CartEntry(cart, true)).toList(), padding));
        Carts few = new Carts(new LinkedHashSet<>(carts(200, 10)), "");
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(Carts.class).write(few, out);
        assertThat(codecs.value(Carts.class).read(out)).isEqualTo(few);
    }

    record Row(int a, int b, List<Integer> cells) {}

    record Rows(Set<Row> all, String unused) {}

    /** It is encoded as the same bytes as the record with the set. */
    record RowsInAList(List<Row> all, String unused) {}

    /** An element of one byte is compared as an object. */
    @Test
    void elementsOfListsInKeysCountForMoreThanTheirBytes() {
        List<Integer> cells = Collections.nCopies(3_500, 0);
        List<Row> rows = IntStream.range(0, 280)
                .mapToObj(i -> new Row(i, -31 * i, cells))
                .toList();
        assertIsRefused(Rows.class, new RowsInAList(rows, "x".repeat(3_000_000)));
    }

    record Amounts(Set<BigDecimal> all) {}

    record ManyAmounts(List<Amounts> all) {}

    record AmountsInAList(List<BigDecimal> all) {}

    /** It is encoded as the same bytes as the record with the sets. */
    record ManyAmountsInLists(List<AmountsInAList> all) {}

    /** Returns numbers with the same hash and about the same value. One has 4,096 digits, and the others have 18. */
    private static List<BigDecimal> decimals(int count) {
        List<BigDecimal> all = new ArrayList<>();
        BigDecimal large = new BigDecimal(BigInteger.TEN.pow(4_095).multiply(BigInteger.valueOf(5)), 4_096);
        all.add(large);
        int scale = 18;
        // the hash of a small number is 31 times the hash of its digits, plus its scale; the hash of the digits is 31
        // times their high half, plus their low half
        int wanted = (large.hashCode() - scale)
                * BigInteger.valueOf(31)
                        .modInverse(BigInteger.ONE.shiftLeft(32))
                        .intValue();
        for (int high = 100_000_000; all.size() < count; high++) {
            BigDecimal small =
                    BigDecimal.valueOf((long) high << 32 | Integer.toUnsignedLong(wanted - 31 * high), scale);
            assertThat(small.hashCode()).isEqualTo(large.hashCode());
            assertThat(small.precision()).isEqualTo(18);
            all.add(small);
        }
        return all;
    }

    /** The tables of the JDK order these numbers, which costs the square of the digits of the largest one. */
    @Test
    void decimalsOfOneHashCountByTheLongestOfThem() {
        AmountsInAList amounts = new AmountsInAList(decimals(33));
        assertIsRefused(ManyAmounts.class, new ManyAmountsInLists(Collections.nCopies(10, amounts)));
        ManyAmounts honest = new ManyAmounts(List.of(new Amounts(IntStream.range(1, 200)
                .mapToObj(i -> new BigDecimal(BigInteger.TEN.pow(1_000).add(BigInteger.valueOf(i)), i))
                .collect(Collectors.toCollection(LinkedHashSet::new)))));
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(ManyAmounts.class).write(honest, out);
        assertThat(codecs.value(ManyAmounts.class).read(out)).isEqualTo(honest);
    }

    record Broad(
            int a,
            int b,
            int c,
            int d,
            int e,
            int f,
            int g,
            int h,
            int i,
            int j,
            int k,
            int l,
            int m,
            int n,
            int o,
            int p,
            int q,
            int r,
            int s,
            int t) {
        static Broad of(int s, int t) {
            return new Broad(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, s, t);
        }
    }

    record Broads(Set<Broad> all) {}

    record BroadsByKey(Map<Broad, Boolean> all) {}

    record ManyBroads(List<Broads> all) {}

    record BroadEntry(Broad key, boolean value) {}

    // these have the same bytes
    record BroadsInAList(List<Broad> all) {}

    record BroadEntries(List<BroadEntry> all) {}

    record ManyBroadsInLists(List<BroadsInAList> all) {}

    /** Returns the same 31 values this many times. All of them have the same hash. */
    private static List<Broad> broads(int times) {
        return IntStream.range(0, 31 * times)
                .mapToObj(i -> Broad.of(i % 31, 31 * (64 - i % 31)))
                .toList();
    }

    /** A message repeats what a set contains once, or contains many sets. */
    @Test
    void keysOfManyComponentsAreCountedHoweverFewASetHas() {
        List<Broad> repeated = broads(300);
        assertIsRefused(Broads.class, new BroadsInAList(repeated));
        assertIsRefused(
                BroadsByKey.class,
                new BroadEntries(
                        repeated.stream().map(key -> new BroadEntry(key, true)).toList()));
        assertIsRefused(
                ManyBroads.class, new ManyBroadsInLists(Collections.nCopies(500, new BroadsInAList(broads(1)))));
    }

    @Test
    void keysThatHoldMessagesAreCountedHoweverFewASetHas() {
        List<Cart> repeated = IntStream.range(0, 10)
                .mapToObj(i -> carts(31, 100))
                .flatMap(List::stream)
                .toList();
        assertIsRefused(Carts.class, new CartsInAList(repeated, ""));
    }

    /** Counting these keys costs memory, which is requested and not counted against the size of the message. */
    @Test
    void manySmallSetsOfKeysOfManyComponentsComeBack() {
        ManyBroads many = new ManyBroads(IntStream.range(0, 4_000)
                .mapToObj(i -> new Broads(Set.of(Broad.of(0, i % 100))))
                .toList());
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(ManyBroads.class).write(many, out);
        assertThat(codecs.value(ManyBroads.class).read(out)).isEqualTo(many);
        Broads ofOneHash = new Broads(new LinkedHashSet<>(broads(1)));
        codecs.value(Broads.class).write(ofOneHash, out.clear());
        assertThat(codecs.value(Broads.class).read(out)).isEqualTo(ofOneHash);
    }

    record Files(Map<BigDecimal, byte[]> all) {}

    record FileEntry(BigDecimal key, byte[] value) {}

    /** It is encoded as the same bytes as the record with the map. */
    record FileEntries(List<FileEntry> all) {}

    @Test
    void theValueOfAnEntryIsNoPartOfWhatItsKeyCosts() {
        FileEntry entry = new FileEntry(BigDecimal.ONE, new byte[100_000]);
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(FileEntries.class).write(new FileEntries(List.of(entry, entry)), out);
        assertThat(((Files) codecs.value(Files.class).read(out)).all()).hasSize(1);
    }

    record Baskets(Set<Set<BigDecimal>> all) {}

    /** It is encoded as the same bytes as the record with the sets. */
    record BasketsInLists(List<List<BigDecimal>> all) {}

    /** A set within a key looks up the decimals of the other set, and may find them by their order. */
    @Test
    void decimalsOfSetsWithinKeysCountByTheirSquareToo() {
        List<List<BigDecimal>> all = decimals(300).stream().map(List::of).toList();
        assertIsRefused(Baskets.class, new BasketsInLists(all));
    }

    record Path(List<Byte> steps) {}

    record Groups(Set<Set<Path>> all) {}

    record Deep(Set<Set<Set<Set<Path>>>> all) {}

    // these have the same bytes
    record GroupsInLists(List<List<Path>> all) {}

    record DeepInLists(List<List<List<List<Path>>>> all) {}

    private static final Path LONG_PATH = new Path(Collections.nCopies(200_000, (byte) 1));

    /** Returns this many short paths with this hash, which is the hash of their steps. */
    private static List<Path> paths(int hash, int count) {
        List<Path> all = new ArrayList<>();
        int digits = 10;
        int ofNone = BigInteger.valueOf(31).pow(digits).intValue();
        for (int i = 0; i < count; i++) {
            Byte[] steps = new Byte[digits];
            long left = (long) i << 32 | Integer.toUnsignedLong(hash - ofNone);
            for (int at = digits - 1; at >= 0; at--) {
                steps[at] = (byte) (left % 31);
                left /= 31;
            }
            Path path = new Path(List.of(steps));
            assertThat(path.hashCode()).isEqualTo(hash);
            all.add(path);
        }
        return all;
    }

    /** A set asks for the hash of each element of the other set, and each hash is computed anew. */
    @Test
    void comparingASmallKeyWithALargeOneCountsBoth() {
        List<List<Path>> all = new ArrayList<>();
        all.add(List.of(LONG_PATH));
        paths(LONG_PATH.hashCode(), 200).forEach(path -> all.add(List.of(path)));
        assertIsRefused(Groups.class, new GroupsInLists(all));
    }

    /** Each element of one key that has the same hash asks for the hash of the elements of the other key. */
    @Test
    void whatIsInOneKeyCountsAsOftenAsOthersMeetItInTheOther() {
        int hash = LONG_PATH.hashCode();
        List<List<List<Path>>> large = new ArrayList<>();
        large.add(List.of(List.of(LONG_PATH)));
        List<List<List<Path>>> small = new ArrayList<>();
        paths(hash, 51).forEach(path -> small.add(List.of(List.of(path))));
        for (int i = 1; i <= 25; i++) {
            large.add(List.of(paths(hash + i, 1)));
            large.add(List.of(paths(hash - i, 1)));
        }
        assertIsRefused(Deep.class, new DeepInLists(List.of(large, small)));
    }

    record Columns(Set<Set<Integer>> numbers, Set<Point> points, Set<BigDecimal> decimals) {}

    /** A large key adds cost only to the keys with the same hash. */
    @Test
    void manyHonestKeysComeBack() {
        Set<Set<Integer>> numbers = new LinkedHashSet<>();
        numbers.add(IntStream.range(0, 20_000).boxed().collect(Collectors.toSet()));
        for (int i = 0; numbers.size() < 2_000; i++) {
            numbers.add(Set.of(i % 97, 100 + i % 89, 200 + i % 83));
        }
        assertThat(numbers.stream().map(Set::hashCode).distinct().count()).isLessThan(300);
        Set<Point> points = IntStream.range(0, 100_000)
                .mapToObj(i -> new Point(i / 333, i % 333))
                .collect(Collectors.toCollection(LinkedHashSet::new));
        assertThat(points.stream().map(Point::hashCode).distinct().count()).isLessThan(10_000);
        Columns columns = new Columns(
                numbers,
                points,
                IntStream.range(0, 10_000)
                        .mapToObj(i -> BigDecimal.valueOf(i, 2))
                        .collect(Collectors.toSet()));
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(Columns.class).write(columns, out);
        assertThat(codecs.value(Columns.class).read(out).equals(columns)).isTrue();
    }

    record Money(BigDecimal amount) implements Comparable<Money> {
        @Override
        public int compareTo(Money other) {
            return amount.compareTo(other.amount);
        }
    }

    /** A value that is never ordered. */
    record Price(BigDecimal amount) {}

    record Moneys(Set<Money> all) {}

    record ManyMoneys(List<Moneys> all) {}

    record Prices(Set<Price> all) {}

    record ManyPrices(List<Prices> all) {}

    record PricesInAList(List<Price> all) {}

    /** It is encoded as the same bytes as the records with sets of moneys and of prices. */
    record ManyPricesInLists(List<PricesInAList> all) {}

    /** The tables of the JDK order a value that is comparable, by whatever it contains. */
    @Test
    void whatIsOrderedByADecimalCountsAsADecimal() {
        PricesInAList prices =
                new PricesInAList(decimals(32).stream().map(Price::new).toList());
        ManyPricesInLists many = new ManyPricesInLists(Collections.nCopies(10, prices));
        assertIsRefused(ManyMoneys.class, many);
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(ManyPricesInLists.class).write(many, out);
        assertThat(((ManyPrices) codecs.value(ManyPrices.class).read(out)).all())
                .hasSize(10);
    }

    /** A tree is ordered again each time that its table grows and another key moves out of the tree. */
    @Test
    void orderingDecimalsCountsForEachGrowthOfTheirTable() {
        AmountsInAList amounts = new AmountsInAList(decimals(11));
        assertIsRefused(ManyAmounts.class, new ManyAmountsInLists(Collections.nCopies(17, amounts)));
    }

    /** The nodes have different hashes. A tree is ordinary data. */
    @Test
    void aTreeOfSetsComesBack() {
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        Node tree = tree(6, "n");
        ByteBuf out = Unpooled.buffer();
        codecs.value(Node.class).write(tree, out);
        assertThat(codecs.value(Node.class).read(out)).isEqualTo(tree);
    }

    private static Node tree(int levels, String name) {
        Set<Node> children = new LinkedHashSet<>();
        for (int i = 0; levels > 0 && i < 5; i++) {
            children.add(tree(levels - 1, name + i));
        }
        return new Node(name, children);
    }

    /** Each set computes the hash of all its contents anew. */
    @Test
    void whatIsDeepInSetsIsHashedABoundedNumberOfTimes() {
        Set<Node> leaves = new LinkedHashSet<>();
        for (int i = 0; i < 60_000; i++) {
            leaves.add(new Node(Integer.toString(i), Set.of()));
        }
        Node node = new Node("", leaves);
        for (int i = 0; i < 80; i++) {
            node = new Node("", Set.of(node));
        }
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(Node.class).write(node, out);
        assertThatThrownBy(() -> codecs.value(Node.class).read(out))
                .isInstanceOf(CodecException.class)
                .hasMessageContaining("too deep within sets");
    }

    private static KeyedInLists keyed(int count) {
        List<Outer> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            List<Inner> key = new ArrayList<>();
            for (int j = 0; j < count; j++) {
                List<Point> points = new ArrayList<>();
                for (int k = 0; k < count; k++) {
                    points.add(point(k < count - 1 ? k : count - 1 + (j < count - 1 ? j : count - 1 + i)));
                }
                key.add(new Inner(new Points(points), 1));
            }
            all.add(new Outer(new Inners(key), 1));
        }
        return new KeyedInLists(all);
    }

    @Test
    void mapsAsKeysAreCountedToo() {
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf few = Unpooled.buffer();
        codecs.value(KeyedInLists.class).write(keyed(3), few);
        Keyed read = (Keyed) codecs.value(Keyed.class).read(few.duplicate());
        assertThat(read.all()).hasSize(3);
        ByteBuf again = Unpooled.buffer();
        codecs.value(Keyed.class).write(read, again);
        assertThat(again).as("the same bytes").isEqualTo(few);

        assertIsRefused(Keyed.class, keyed(28));
    }
}
