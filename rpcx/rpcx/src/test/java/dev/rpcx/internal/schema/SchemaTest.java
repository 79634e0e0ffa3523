package dev.rpcx.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import dev.rpcx.schema.Unknown;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Calendar;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.RunnableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class SchemaTest {
    record Anything(Object value) {}

    record Dated(Calendar date) {}

    record Raw(@SuppressWarnings("rawtypes") List list) {}

    record Concrete(ArrayList<String> list) {}

    record Array(int[] numbers) {}

    record Twice(Optional<Optional<String>> value) {}

    record Open(CharSequence text) {}

    record Inner(Dated dated) {}

    record Half(@Field(1) int a, int b) {}

    record Same(@Field(1) int a, @Field(1) int b) {}

    record Kept(@Field(19_500) int a) {}

    record Locked(int a, int b) {}

    sealed interface Chain permits Link, Broken {}

    record Link(String name, Chain next) implements Chain {}

    record Broken(Object value) implements Chain {}

    sealed interface TwoUnknown permits Known, Unheard, Unseen {}

    record Known(int a) implements TwoUnknown {}

    @Unknown
    record Unheard() implements TwoUnknown {}

    @Unknown
    record Unseen() implements TwoUnknown {}

    enum TwoOthers {
        @Unknown
        OTHER,
        @Unknown
        ANOTHER
    }

    record Others(TwoOthers other) {}

    interface Futures {
        Future<String> plain();

        Future<Void> ofNothing();

        RunnableFuture<String> task();
    }

    interface Service {
        void take(String name, Map<String, Object> map);
    }

    static class NoConstructor {
        NoConstructor(int x) {}
    }

    record OfClass(NoConstructor it) {}

    enum Zero {
        UNKNOWN,
        @Field(0)
        OFF,
        @Field(1)
        ON
    }

    record Zeros(Zero zero) {}

    record Bytes(Set<byte[]> all) {}

    record ByBytes(Map<byte[], String> all) {}

    record Nest<T>(T value, Nest<List<T>> inner) {}

    record Nested(Nest<String> nest) {}

    static class Upper<A, B> {
        private A one;
        private B other;

        public A getOne() {
            return one;
        }

        public void setOne(A one) {
            this.one = one;
        }

        public B getOther() {
            return other;
        }

        public void setOther(B other) {
            this.other = other;
        }
    }

    static class Middle<A> extends Upper<Integer, A> {}

    static class Lower extends Middle<String> {}

    /** Has accessors in the spellings of Lombok and Kotlin, and in two spellings that editors generate. */
    static class Spelled {
        private boolean isActive;
        private boolean open;
        private String aName;
        private int size;
        private transient int count;
        private final List<String> own = new ArrayList<>();

        public boolean isActive() {
            return isActive;
        }

        public void setActive(boolean active) {
            isActive = active;
        }

        public boolean isOpen() {
            return open;
        }

        public void setOpen(boolean open) {
            this.open = open;
        }

        public String getaName() {
            return aName;
        }

        public void setaName(String name) {
            aName = name;
        }

        public int size() {
            return size;
        }

        public void size(int size) {
            this.size = size;
            own.add("size");
        }

        public int getCount() {
            return count++;
        }
    }

    static class OnlyGot {
        private final List<String> items = new ArrayList<>();
        private int kept;

        public List<String> getItems() {
            return items;
        }

        public int getKept() {
            return kept;
        }

        public void setKept(int kept) {
            this.kept = kept;
        }
    }

    static class OnlySet {
        private int kept;

        public void setKept(int kept) {
            this.kept = kept;
        }

        @Override
        public String toString() {
            return "" + kept;
        }
    }

    static class Shared {
        private boolean isActive;
        private boolean active;

        public boolean isActive() {
            return isActive || active;
        }

        public void setActive(boolean active) {
            this.active = active;
            isActive = active;
        }
    }

    /** The accessors are in the subclass. */
    abstract static class Entity<I> {
        protected long id;
        protected I key;
        private int hashCode;

        public I getKey() {
            return key;
        }

        public void setKey(I key) {
            this.key = key;
        }

        @Override
        public int hashCode() {
            return hashCode++;
        }

        @Override
        public boolean equals(Object other) {
            return this == other;
        }
    }

    static class Order extends Entity<String> {
        private String text;

        public long getId() {
            return id;
        }

        public void setId(long id) {
            this.id = id;
        }

        @Override
        public String getKey() {
            return key;
        }

        public String getText() {
            return text;
        }

        public void setText(String text) {
            this.text = text;
        }
    }

    static class OtherType {
        private Long id = 1L;
        private int kept;

        public long getId() {
            return id;
        }

        public void setId(long id) {
            this.id = id;
        }

        public int getKept() {
            return kept;
        }

        public void setKept(int kept) {
            this.kept = kept;
        }
    }

    static class Wither {
        private final long cents;

        Wither() {
            this(0, 0);
        }

        private Wither(long whole, long cents) {
            this.cents = 100 * whole + cents;
        }

        public long cents() {
            return cents;
        }

        public Wither cents(long other) {
            return new Wither(0, other);
        }
    }

    /** Has no setters, as a class with Lombok's {@code @Value}, and a field that is no component. */
    static final class Price {
        @Field(2)
        private final long cents;

        private final String unit;
        private final int hash;

        Price(long cents, @Nullable @Field(1) String unit) {
            this.cents = cents;
            this.unit = unit;
            hash = 7;
        }

        public long getCents() {
            return cents;
        }

        @Field(1)
        public String getUnit() {
            return unit;
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Price price && price.cents == cents;
        }
    }

    static final class Swapped {
        private final int x;
        private final int y;

        Swapped(int y, int x) {
            this.x = x;
            this.y = y;
        }

        public int x() {
            return x;
        }

        public int y() {
            return y;
        }
    }

    static class NumberedSetter {
        private int number;

        public int getNumber() {
            return number;
        }

        @Field(7)
        public void setNumber(int number) {
            this.number = number;
        }
    }

    static class NumberedTwice {
        @Field(1)
        private int number;

        @Field(2)
        public int getNumber() {
            return number;
        }

        public void setNumber(int number) {
            this.number = number;
        }
    }

    static class NumberedForNothing {
        private int number;

        @Field(7)
        private transient int cached;

        public int getNumber() {
            return number + cached;
        }

        public void setNumber(int number) {
            this.number = number;
            cached = 0;
        }
    }

    /** The compiler copies the annotation to the bridge of the getter. */
    static class NumberedBridge extends Upper<String, Integer> {
        @Override
        @Field(2)
        public String getOne() {
            return super.getOne();
        }

        @Override
        @Field(1)
        public Integer getOther() {
            return super.getOther();
        }
    }

    record NumberedAccessor(int number) {
        @Override
        @Field(7)
        public int number() {
            return number;
        }
    }

    static class Apples {
        record Sort(String name) implements Fruit {}
    }

    static class Pears {
        record Sort(int number) implements Fruit {}
    }

    sealed interface Fruit permits Apples.Sort, Pears.Sort {}

    sealed interface Pet permits Cat, Dog {}

    record Cat(int lives) implements Pet {}

    @Unknown
    record Dog() implements Pet {}

    /**
     * Only its field says that it may be null. The annotation is on the type, which is kept, and not on the
     * declaration.
     */
    static class Nick {
        @Field(1)
        private @Nullable String name;

        private @Nullable String numbered;

        @SuppressWarnings("NullAway") // an older class says nothing of null at its accessors
        public String getName() {
            return name;
        }

        public void setName(String name) {
            this.name = name;
        }

        @Field(2)
        @SuppressWarnings("NullAway")
        public String getNumbered() {
            return numbered;
        }

        public void setNumbered(String numbered) {
            this.numbered = numbered;
        }
    }

    /**
     * This annotation does not apply to the components of a record, as Spring's did not for years. The compiler puts it
     * on the accessor.
     */
    static final class Older {
        @Retention(RetentionPolicy.RUNTIME)
        @Target({ElementType.METHOD, ElementType.PARAMETER, ElementType.FIELD})
        @interface Nullable {}

        record User(@Nullable String nick, String name) {}
    }

    /** This annotation is not kept at run time, and is one of JetBrains' kind: it does not belong to types. */
    static final class InFile {
        @Retention(RetentionPolicy.CLASS)
        @Target({ElementType.METHOD, ElementType.PARAMETER, ElementType.FIELD})
        @interface Nullable {}

        record User(
                @Nullable String nick,
                String name,
                @Nullable Way way,
                @Nullable List<String> all) {}

        static final class Made {
            private final String nick;

            @Nullable
            private final String other;

            private final String name;

            Made(@Nullable String nick, String other, String name) {
                this.nick = nick;
                this.other = other;
                this.name = name;
            }

            public String nick() {
                return nick;
            }

            public String other() {
                return other;
            }

            public String name() {
                return name;
            }
        }

        interface Calls {
            @Nullable
            String find(long id, double weight, long[] @Shown(ElementType.TYPE) [] other, @Nullable String nick);

            @Nullable
            User user(@Nullable User user);

            User whole(User user);
        }
    }

    /** Is in the class file, and has values that have to be passed over. */
    @Retention(RetentionPolicy.CLASS)
    @Target({ElementType.TYPE_USE, ElementType.METHOD})
    @interface Shown {
        ElementType value();

        int[] numbers() default {};

        Class<?> type() default Object.class;

        Deprecated[] marks() default {};
    }

    /** This annotation is not kept at run time, and belongs to types. */
    static final class OnType {
        @Retention(RetentionPolicy.CLASS)
        @Target(ElementType.TYPE_USE)
        @interface Nullable {}

        record User(
                @Shown(value = ElementType.FIELD, numbers = 1, marks = @Deprecated(since = "1")) @Nullable
                String nick,

                byte @Nullable [] picture,
                @Nullable byte[] bytes,
                List<@Nullable String> all) {}

        interface Calls {
            <T extends @Nullable Object> CompletionStage<@Nullable Integer> count(long id, @Nullable String nick)
                    throws @Nullable Exception;

            CompletionStage<Integer> all(Map<String, @Nullable Integer> numbers);
        }
    }

    enum Way {
        UP,
        DOWN,
        @Unknown
        LEFT
    }

    record Ways(Way way) {}

    private static void refused(Class<?> type, String... words) {
        Schema schema = new Schema(LockFile.none());
        assertThatThrownBy(() -> schema.value(type))
                .isInstanceOf(SchemaException.class)
                .message()
                .contains(words);
        // the second attempt fails too, because a refused type is not half known
        assertThatThrownBy(() -> schema.value(type)).isInstanceOf(SchemaException.class);
    }

    @Test
    void whatCannotBeMappedIsNamed() {
        refused(Anything.class, "Anything.value", "java.lang.Object");
        refused(Dated.class, "Dated.date", "java.util.Calendar", "write it as a ZonedDateTime");
        refused(Inner.class, "Dated.date", "java.util.Calendar");
        refused(Raw.class, "Raw.list", "List<…>");
        refused(Concrete.class, "Concrete.list", "List, Set or Map");
        refused(Array.class, "Array.numbers", "List");
        refused(Twice.class, "Twice.value", "Optional");
        refused(Open.class, "Open.text", "java.lang.CharSequence");
        refused(OfClass.class, "NoConstructor", "constructor");
        assertThatThrownBy(() ->
                        new Schema(LockFile.none()).parameters(Service.class.getDeclaredMethods()[0]))
                .hasMessageContaining("Service.take(map), value")
                .hasMessageContaining("java.lang.Object");
    }

    @Test
    void whatIsEqualOnlyToItselfIsNeitherKeyNorElementOfASet() {
        refused(Bytes.class, "Bytes.all", "a byte[] equals no other");
        refused(ByBytes.class, "ByBytes.all, key", "a byte[] equals no other");
    }

    @Test
    void aTypeWithoutEndIsRefused() {
        refused(Nested.class, "Nest.inner", "type arguments nested more than 16 deep");
    }

    /** Both classes name a parameter A, and they stand for different types. */
    @Test
    void parametersOfSuperclassesAreThoseThatTheSubclassGives() {
        assertThat(new Schema(LockFile.none())
                        .value(Lower.class).fields().stream()
                                .map(field -> field.name() + " " + field.shape())
                                .toList())
                .containsExactlyInAnyOrder("one " + Scalar.INT, "other " + Scalar.STRING);
    }

    @Test
    void accessorsMayBeSpelledInAllUsualWays() {
        assertThat(new Schema(LockFile.none())
                        .value(Spelled.class).fields().stream()
                                .map(FieldType::name)
                                .toList())
                .containsExactly("isActive", "open", "aName", "size");
    }

    @Test
    void aSubclassMayHaveTheAccessorsOfAField() {
        assertThat(new Schema(LockFile.none())
                        .value(Order.class).fields().stream()
                                .map(field -> field.name() + " " + field.shape())
                                .toList())
                .containsExactlyInAnyOrder("id " + Scalar.LONG, "key " + Scalar.STRING, "text " + Scalar.STRING);
    }

    /** Otherwise the value of the property would be lost without an error. */
    @Test
    void aPropertyOfOneAccessorIsRefused() {
        refused(OnlyGot.class, "OnlyGot.items", "a public getter and no public setter", "transient");
        refused(OnlySet.class, "OnlySet.kept", "a public setter and no public getter", "transient");
        refused(Shared.class, "Shared.active", "isActive() is also the accessor of isActive");
        refused(OtherType.class, "OtherType.id", "getId() has another type than the field");
        refused(Wither.class, "Wither.cents", "a public setter of a final field", "transient");
    }

    @Test
    void aNumberThatNothingLooksForIsRefused() {
        String text = "@Field where it gives no number (expected: ";
        refused(NumberedSetter.class, "NumberedSetter.setNumber(): " + text);
        refused(NumberedTwice.class, "NumberedTwice.number: " + text);
        refused(NumberedForNothing.class, "NumberedForNothing.cached: " + text);
        refused(NumberedAccessor.class, "NumberedAccessor.number(): " + text);
        assertThat(new Schema(LockFile.none()).value(NumberedBridge.class).fields())
                .extracting(FieldType::name, FieldType::number)
                .containsExactly(tuple("one", 2), tuple("other", 1));
    }

    @Test
    void casesOfOneNameAreRefused() {
        refused(Fruit.class, "$Fruit", "$Apples$Sort and ", "$Pears$Sort", "sort");
    }

    @Test
    void whatStandsForTheUnknownHadNoOtherNumber() {
        String text = "enum " + Way.class.getName() + "\n  1 UP constant\n  2 DOWN constant\n  3 LEFT constant\n";
        assertThatThrownBy(() -> new Schema(LockFile.parse(text, "a.lock")).value(Ways.class))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("Way.LEFT: has number 0, and number 3 in META-INF/rpcx/schema.lock");
    }

    @Test
    void whatStandsForTheUnknownWasNoOtherCase() {
        String type = "oneof " + Pet.class.getName() + "\n";
        assertThatThrownBy(
                        () -> new Schema(LockFile.parse(type + "  0 Fish unknown\n  1 cat a.Cat\n  2 dog a.Dog\n", "a"))
                                .value(Pet.class))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("Pet.dog: has number 0, and number 2 in META-INF/rpcx/schema.lock");
        Schema extending = Schema.extending(LockFile.parse(type + "  0 Cat unknown\n", "a"));
        assertThatThrownBy(() -> extending.value(Pet.class))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("Pet.Cat: has number 1, and number 0 in META-INF/rpcx/schema.lock");
        assertThat(new Schema(LockFile.parse(type + "  0 Dog unknown\n  4 cat a.Cat\n", "a"))
                        .value(Pet.class)
                        .fields())
                .extracting(FieldType::number)
                .containsExactly(4);
    }

    @Test
    void aFieldSaysByItselfThatItMayBeNull() {
        assertThat(new Schema(LockFile.none()).value(Older.User.class).fields())
                .extracting(FieldType::name, FieldType::holder)
                .containsExactly(tuple("nick", FieldType.Holder.NULLABLE), tuple("name", FieldType.Holder.PLAIN));
        assertThat(new Schema(LockFile.none()).value(Nick.class).fields())
                .extracting(FieldType::name, FieldType::holder)
                .containsExactly(
                        tuple("name", FieldType.Holder.NULLABLE), tuple("numbered", FieldType.Holder.NULLABLE));
    }

    private static List<String> holders(MessageType type) {
        return type.fields().stream()
                .map(field -> field.name() + " " + field.holder())
                .toList();
    }

    private static Method method(Class<?> type, String name) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void anAnnotationThatIsOnlyInTheClassFileAllowsNull() {
        Schema schema = new Schema(LockFile.none());
        assertThat(holders(schema.value(InFile.User.class)))
                .containsExactly("nick NULLABLE", "name PLAIN", "way NULLABLE", "all PLAIN");
        assertThat(schema.value(InFile.User.class).fields().get(3).shape())
                .as("a list that can be null is in a message")
                .isInstanceOf(MessageType.class);
        assertThat(holders(schema.value(InFile.Made.class)))
                .containsExactly("nick NULLABLE", "other NULLABLE", "name PLAIN");
        assertThat(holders(schema.value(OnType.User.class)))
                .containsExactly("nick NULLABLE", "picture NULLABLE", "bytes PLAIN", "all LIST");
    }

    @Test
    void anAnnotationInTheFileOfAnInterfaceAllowsNull() {
        Schema schema = new Schema(LockFile.none());
        assertThat(holders(schema.parameters(method(OnType.Calls.class, "count"))))
                .containsExactly("id PLAIN", "nick NULLABLE");
        assertThat(holders(schema.result(method(OnType.Calls.class, "count")))).containsExactly("value NULLABLE");
        assertThat(holders(schema.result(method(OnType.Calls.class, "all")))).containsExactly("value PLAIN");
        assertThat(schema.parameters(method(InFile.Calls.class, "user")).kind()).isEqualTo(MessageType.Kind.PARAMETERS);
        assertThat(schema.result(method(InFile.Calls.class, "user")).kind()).isEqualTo(MessageType.Kind.WRAPPER);
        assertThat(schema.parameters(method(InFile.Calls.class, "whole")).kind())
                .isEqualTo(MessageType.Kind.RECORD);
        assertThat(schema.result(method(InFile.Calls.class, "whole")).kind()).isEqualTo(MessageType.Kind.RECORD);
        assertThat(holders(schema.result(method(InFile.Calls.class, "find")))).containsExactly("value NULLABLE");
        FileNullables file = FileNullables.of(InFile.Calls.class);
        assertThat(method(InFile.Calls.class, "find").getParameters())
                .extracting(file::isOn)
                .containsExactly(false, false, false, true);
    }

    @Test
    void aClassWithoutSettersIsMadeByTheConstructorThatTakesItsFields() {
        MessageType price = new Schema(LockFile.none()).value(Price.class);
        assertThat(price.kind()).isEqualTo(MessageType.Kind.CONSTRUCTED);
        assertThat(price.fields())
                .extracting(FieldType::name, FieldType::number, FieldType::holder)
                .containsExactly(
                        tuple("cents", 2, FieldType.Holder.PLAIN), tuple("unit", 1, FieldType.Holder.NULLABLE));
        refused(
                Swapped.class,
                "Swapped: its constructor takes [y, x], and its fields with a getter are [x, y]",
                "the same names in the same order");
    }

    @Test
    void aLockHasTheNumbersThatConstantsMayHave() {
        LockFile lock = LockFile.parse("enum a.E\n  2147483647 LAST constant\n", "a.lock");
        assertThat(lock.entries().get("a.E").lines().get("LAST").number()).isEqualTo(Integer.MAX_VALUE);
        assertThatThrownBy(() -> LockFile.parse("enum a.E\n  2147483648 LAST constant\n", "a.lock"))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("a.lock:2: 2147483648 LAST constant");
    }

    @Test
    void numberZeroIsTheUnknowns() {
        refused(Zeros.class, "Zero.OFF: number 0 is taken by UNKNOWN");
    }

    /** Otherwise nothing would say which of them an unknown value becomes. */
    @Test
    void oneStandsForTheUnknownAtMost() {
        refused(TwoUnknown.class, "TwoUnknown", "Unheard", "Unseen", "@Unknown");
        refused(Others.class, "TwoOthers", "OTHER", "ANOTHER", "@Unknown");
    }

    /** A server learns of the end of a stage, and of no other future. A client returns no other kind either. */
    @Test
    void aFutureThatNobodyWaitsForIsNoResult() {
        for (var method : Futures.class.getDeclaredMethods()) {
            assertThatThrownBy(() -> new Schema(LockFile.none()).result(method))
                    .isInstanceOf(SchemaException.class)
                    .hasMessageContaining("result of " + Futures.class.getName() + "." + method.getName())
                    .hasMessageContaining("expected: CompletionStage, CompletableFuture or RPCXFuture");
        }
    }

    @Test
    void numbersMustFit() {
        refused(Half.class, "Half.b", "@Field");
        refused(Same.class, "Same.b", "taken by a");
        refused(Kept.class, "19500");
    }

    @Test
    void theLockGivesNumbers() {
        String name = Locked.class.getName();
        MessageType type = new Schema(LockFile.parse("message " + name + "\n  7 b int32\n  3 a int32\n", "test"))
                .value(Locked.class);
        assertThat(type.source()).isEqualTo(NumberSource.LOCK);
        assertThat(type.fields().stream().map(FieldType::number)).containsExactly(3, 7);
        assertThatThrownBy(() ->
                        new Schema(LockFile.parse("message " + name + "\n  3 a int32\n", "test")).value(Locked.class))
                .hasMessageContaining("Locked.b")
                .hasMessageContaining("rpcx lock");
        assertThatThrownBy(() -> new Schema(
                                LockFile.parse("message " + name + "\n  3 a int32\n  removed 4 b int32\n", "test"))
                        .value(Locked.class))
                .hasMessageContaining("Locked.b")
                .hasMessageContaining("reserved");
    }

    record Moody(@Field(1) String id, @Field(2) String mood) {}

    record Again(@Field(1) String id, @Field(2) String other) {}

    /** The lock of another project may belong to a newer version of the library that has the type. */
    @Test
    void whatFieldGivesAgainUnderItsNameHasItsNumber() {
        String lines = "  1 id string\n  removed 2 mood string\n  removed 3 old string\n";
        MessageType type = new Schema(LockFile.parse("message " + Moody.class.getName() + "\n" + lines, "test"))
                .value(Moody.class);
        assertThat(type.fields().stream().map(FieldType::number)).containsExactly(1, 2);
        assertThat(type.reserved()).containsExactly(new MessageType.Reserved(3, "old"));
        assertThatThrownBy(() -> new Schema(LockFile.parse("message " + Again.class.getName() + "\n" + lines, "test"))
                        .value(Again.class))
                .hasMessageContaining("Again.other: number 2 is taken by mood, which was removed");
    }

    @Test
    void aWrongLockNamesItsLine() {
        assertThatThrownBy(() -> LockFile.parse("message a.B\n  1 a int32\n  1 b int32\n", "x.lock"))
                .hasMessageContaining("x.lock:3")
                .hasMessageContaining("taken by a");
        assertThatThrownBy(() -> LockFile.parse("  1 a int32\n", "x.lock")).hasMessageContaining("x.lock:1");
        assertThatThrownBy(() -> LockFile.parse("record a.B\n", "x.lock"))
                .hasMessageContaining("message, enum or oneof");
    }

    /** {@link Link} is complete when {@link Broken} is refused, and contains a type that is not complete. */
    @Test
    void aTypeThatIsRefusedLeavesNothingBehind() {
        Schema schema = new Schema(LockFile.none());
        assertThatThrownBy(() -> schema.value(Chain.class)).isInstanceOf(SchemaException.class);
        assertThat(schema.shapes()).isEmpty();
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> schema.value(Link.class))
                    .isInstanceOf(SchemaException.class)
                    .hasMessageContaining("Broken.value");
        }
        assertThat(schema.value(Locked.class).fields()).hasSize(2);
    }
}
