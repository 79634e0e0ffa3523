package dev.rpcx.internal.schema;

import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Structure of what a method takes and brings: the numbers, names and types of all members of its request, of its
 * reply, and of all types in them. Client and server compare the {@linkplain #hash hashes} of their structures when a
 * connection opens. If these differ, the client compares the {@linkplain #types members}, and finds out whether the two
 * sides would misread each other: see {@link #difference}. Objects of this class are immutable. Source:
 * rpcx/spec/wire.md, "Schemas".
 */
public final class MethodSchema {
    /** Value of {@link #hash} that says nothing about the structure. */
    public static final long NO_HASH = 0;

    /** Structure of a method of which nothing is known. It differs from no other structure. */
    public static final MethodSchema UNKNOWN = new MethodSchema();

    /** Maximum number of types of a method. The structure of a method with more types has {@link #NO_HASH}. */
    public static final int MAX_TYPES = 4096;

    /** Maximum number of members of all types of a method. A structure with more members has {@link #NO_HASH}. */
    public static final int MAX_MEMBERS = 16 * 1024;

    /** Maximum length in bytes of the name of a member. A structure with a longer name has {@link #NO_HASH}. */
    public static final int MAX_NAME_BYTES = 255;

    /** Maximum number of former names of a member. Of more names, the newest are kept. */
    public static final int MAX_FORMER_NAMES = 16;

    /** Value of {@link Member#type} for the constant of an enum that stands for all values that are not known. */
    static final String UNKNOWN_CONSTANT = "unknown";

    /** First word of {@link Member#type} for a list or a set. */
    static final String REPEATED = "repeated";

    /** First word of {@link Member#type} for a map. */
    static final String MAP = "map";

    /** First character of a word of {@link Member#type} that stands for a type of this method. Its index follows. */
    static final String REFERENCE = "#";

    /**
     * Maximum length in characters of {@link Type#name}. A longer name is cut, since it is only for people. In UTF-8,
     * each of these characters has at most three bytes, so the name never has more than {@link #MAX_NAME_BYTES}.
     */
    private static final int MAX_TYPE_NAME_LENGTH = 80;

    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    /** Kind of a type, by which its members have their meaning. */
    public enum Kind {
        /** A message that RPCX makes for the parameters of a method, for one parameter, or for a result. */
        CALL("call"),
        MESSAGE("message"),
        /** A sealed type. Its members are its cases. */
        ONEOF("oneof"),
        /** An enum. Its members are its constants. */
        ENUM("enum");

        /** The word by which this kind is written on the wire. */
        public final String word;

        Kind(String word) {
            this.word = word;
        }

        /** Returns the kind with this word; null if there is none. */
        public static @Nullable Kind of(String word) {
            for (Kind kind : values()) {
                if (kind.word.equals(word)) {
                    return kind;
                }
            }
            return null;
        }
    }

    /**
     * A type with its members.
     *
     * @param name name of the type in an exported {@code .proto}, for people; the names of a type may differ between
     *     client and server
     * @param members members of the type, by number
     */
    public record Type(Kind kind, String name, List<Member> members) {
        public Type {
            members = List.copyOf(members);
        }
    }

    /**
     * A component of a message, a parameter, a case of a sealed type, or a constant of an enum.
     *
     * @param name name of the member; empty for a parameter whose name is not in the class file
     * @param type for a component, a parameter or a case, the word {@code repeated} or {@code map} if it is a list, a
     *     set or a map, and then the type of a value, or of a key and a value; each is the name of a scalar or of a
     *     message of a fixed form, or {@code #} and the index of a type of this method. For a constant,
     *     {@code unknown} if it stands for all values that are not known, and otherwise empty.
     * @param formerNames names that the member had before it was renamed
     */
    public record Member(int number, String name, String type, List<String> formerNames) {
        public Member {
            formerNames = List.copyOf(formerNames);
        }

        /** Says whether two members are known to be the same, by their names and former names. */
        boolean isSame(Member other) {
            return name.equals(other.name)
                    || formerNames.contains(other.name)
                    || other.formerNames.contains(name)
                    || formerNames.stream().anyMatch(other.formerNames::contains);
        }
    }

    private final @Nullable MessageType request;
    private final @Nullable MessageType reply;
    private final long hash;

    private MethodSchema() {
        request = null;
        reply = null;
        hash = NO_HASH;
    }

    private MethodSchema(MessageType request, MessageType reply) {
        this.request = request;
        this.reply = reply;
        this.hash = hash(types());
    }

    /**
     * Returns the structure of what a method takes and brings.
     *
     * @param items type of the items of the stream that the method takes; null if the method takes no stream
     */
    public static MethodSchema of(Method method, java.lang.reflect.@Nullable Type items, Schema schema) {
        return of(items == null ? schema.parameters(method) : schema.value(items, method), schema.result(method));
    }

    /** Returns the structure of a method whose request, or stream item, and whose reply are these messages. */
    public static MethodSchema of(MessageType request, MessageType reply) {
        return new MethodSchema(request, reply);
    }

    /**
     * Returns a number that is equal for equal structures. The names of types and former names of members make no
     * difference. The number is {@link #NO_HASH} if the structure is not known, or too large to be compared.
     */
    public long hash() {
        return hash;
    }

    /**
     * Returns the types of the method. The first one is the request, or an item of the stream that is taken, and the
     * second one is the reply, or an item of the stream that is brought. The types in them follow, each in the order in
     * which the members of the types before it name it first. The list is made anew at each call.
     */
    public List<Type> types() {
        return request == null || reply == null ? List.of() : new Types(request, reply).all();
    }

    /**
     * Compares the structure of a method at the client, which is this one, with that at the server.
     *
     * @param server types of the method at the server
     * @return a text that names a type and a member on both sides of which one side would misread the bytes of the
     *     other; null if there is none
     */
    public @Nullable String difference(List<Type> server) {
        return new SchemaDifference(types(), server).find();
    }

    private static long hash(List<Type> types) {
        if (!canBeCompared(types)) {
            return NO_HASH;
        }
        long hash = FNV_OFFSET;
        for (byte each : text(types).getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ each & 0xFF) * FNV_PRIME;
        }
        return hash == NO_HASH ? 1 : hash;
    }

    private static boolean canBeCompared(List<Type> types) {
        int members = 0;
        for (Type type : types) {
            members += type.members.size();
            for (Member member : type.members) {
                if (utf8Length(member.name) > MAX_NAME_BYTES) {
                    return false;
                }
            }
        }
        return types.size() <= MAX_TYPES && members <= MAX_MEMBERS;
    }

    private static int utf8Length(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }

    /** Returns the text that is hashed. An example is {@code call{1 name string;}call{1 value string;}}. */
    private static String text(List<Type> types) {
        StringBuilder text = new StringBuilder();
        for (Type type : types) {
            text.append(type.kind.word).append('{');
            for (Member member : type.members) {
                text.append(member.number).append(' ').append(member.name);
                if (!member.type.isEmpty()) {
                    text.append(' ').append(member.type);
                }
                text.append(';');
            }
            text.append('}');
        }
        return text.toString();
    }

    /** Makes the types of one method. */
    private static final class Types {
        /** The types in their order. Making the members of one adds those that the members name. */
        private final List<Shape> shapes = new ArrayList<>();

        private final Map<Shape, Integer> indexes = new HashMap<>();

        Types(MessageType request, MessageType reply) {
            shapes.add(request);
            shapes.add(reply);
            indexes.put(request, 0);
            indexes.putIfAbsent(reply, 1);
        }

        List<Type> all() {
            List<Type> types = new ArrayList<>();
            for (int index = 0; index < shapes.size(); index++) {
                Shape shape = shapes.get(index);
                if (shape instanceof MessageType message) {
                    types.add(new Type(kind(message, index), name(message), members(message)));
                } else if (shape instanceof EnumType constants) {
                    types.add(new Type(Kind.ENUM, name(constants), members(constants)));
                }
            }
            return types;
        }

        /**
         * Returns the kind of a message. A message that RPCX makes for a list, a set or a map is like a message of the
         * user, since it stands in a field and not for a whole request or reply.
         */
        private static Kind kind(MessageType message, int index) {
            return switch (message.kind()) {
                case ONEOF -> Kind.ONEOF;
                case RECORD, BEAN, CONSTRUCTED -> Kind.MESSAGE;
                case WRAPPER, PARAMETERS -> index < 2 ? Kind.CALL : Kind.MESSAGE;
            };
        }

        private static String name(Shape shape) {
            String name = shape.protoName();
            return name.length() > MAX_TYPE_NAME_LENGTH ? name.substring(0, MAX_TYPE_NAME_LENGTH) : name;
        }

        private List<Member> members(MessageType message) {
            List<FieldType> fields = new ArrayList<>(message.fields());
            fields.sort(Comparator.comparingInt(FieldType::number));
            List<Member> members = new ArrayList<>();
            for (FieldType field : fields) {
                boolean hasName =
                        message.kind() != MessageType.Kind.PARAMETERS || !Compatibility.isSyntheticName(field.name());
                members.add(new Member(
                        field.number(),
                        hasName ? field.name() : "",
                        text(field),
                        formerNames(message.formerNames(), field.number())));
            }
            return members;
        }

        private static List<Member> members(EnumType type) {
            Enum<?>[] constants = type.constants();
            List<Member> members = new ArrayList<>();
            for (int i = 0; i < constants.length; i++) {
                int number = type.numbers().get(i);
                members.add(new Member(
                        number,
                        constants[i].name(),
                        constants[i] == type.unknown() ? UNKNOWN_CONSTANT : "",
                        formerNames(type.formerNames(), number)));
            }
            members.sort(Comparator.comparingInt(Member::number));
            return members;
        }

        private static List<String> formerNames(Map<Integer, List<String>> ofType, int number) {
            List<String> names = ofType.getOrDefault(number, List.of()).stream()
                    .filter(name -> utf8Length(name) <= MAX_NAME_BYTES)
                    .toList();
            return names.subList(Math.max(0, names.size() - MAX_FORMER_NAMES), names.size());
        }

        private String text(FieldType field) {
            Shape key = field.key();
            String value = text(field.shape());
            return switch (field.holder()) {
                case PLAIN, NULLABLE, OPTIONAL -> value;
                case LIST, SET -> REPEATED + " " + value;
                case MAP -> MAP + " " + (key == null ? "" : text(key)) + " " + value;
            };
        }

        /**
         * Returns the word for the type of a value. Java's {@code byte}, {@code short} and {@code int} have one word,
         * since a value that does not fit is refused. A UUID and a {@code BigInteger} are not {@code bytes} here, since
         * other bytes would be read as another value.
         */
        private String text(Shape shape) {
            if (shape == Scalar.UUID) {
                return "uuid";
            }
            if (shape == Scalar.BIG_INTEGER) {
                return "integer";
            }
            if (shape instanceof Scalar || shape instanceof WellKnown) {
                return shape.protoName();
            }
            Integer known = indexes.putIfAbsent(shape, shapes.size());
            if (known != null) {
                return REFERENCE + known;
            }
            shapes.add(shape);
            return REFERENCE + (shapes.size() - 1);
        }
    }
}
