package dev.rpcx.internal.schema;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A Protobuf message, together with the Java type whose values the message carries. A generic Java type has one message
 * for each combination of type arguments.
 */
public final class MessageType implements Shape {
    /** Java form of the values that a message carries. */
    public enum Kind {
        /** A record. Codecs read a record by its accessors, and make a record by its canonical constructor. */
        RECORD,
        /** A class with getters, setters and a constructor without parameters. */
        BEAN,
        /**
         * A class with getters, and a constructor that takes the values of all fields. Codecs treat it as a record: see
         * {@link Constructed}.
         */
        CONSTRUCTED,
        /**
         * A sealed interface or a sealed abstract class. The message has one field for each case. Only the case that
         * stands for unknown cases has no field. At most one of the fields is set.
         */
        ONEOF,
        /**
         * A single value, which is field 1 of the message. RPCX makes such a message for a value that is not itself a
         * message, or for a value that can be null. The message for {@code void} has no field.
         */
        WRAPPER,
        /** The parameters of a method, or of the constructor of an exception whose state is sent. */
        PARAMETERS
    }

    private final String protoName;
    private final Kind kind;
    private final Class<?> javaClass;
    private final String javaName;
    private List<Integer> positions = List.of();
    private int arity;
    private NumberSource source = NumberSource.FIXED;
    private List<FieldType> fields = List.of();
    private List<Method> getters = List.of();
    private List<Method> setters = List.of();
    private @Nullable Constructor<?> constructor;
    private @Nullable Object unknownCase;
    private List<Reserved> reserved = List.of();
    private Map<Integer, List<String>> formerNames = Map.of();

    /** Number and name of a field or an enum constant that has been removed. */
    public record Reserved(int number, String name) {}

    MessageType(String protoName, Kind kind, Class<?> javaClass, String javaName) {
        this.protoName = protoName;
        this.kind = kind;
        this.javaClass = javaClass;
        this.javaName = javaName;
    }

    MessageType parameters(int ofMethod, List<Integer> ofFields) {
        arity = ofMethod;
        positions = List.copyOf(ofFields);
        return this;
    }

    MessageType fields(List<FieldType> ofMessage, NumberSource numbersFrom) {
        fields = List.copyOf(ofMessage);
        source = numbersFrom;
        return this;
    }

    MessageType members(List<Method> ofGetters, List<Method> ofSetters, Constructor<?> ofConstructor) {
        getters = List.copyOf(ofGetters);
        setters = List.copyOf(ofSetters);
        constructor = ofConstructor;
        return this;
    }

    MessageType unknownCase(@Nullable Object value) {
        unknownCase = value;
        return this;
    }

    MessageType reserved(List<Reserved> removed) {
        reserved = List.copyOf(removed);
        return this;
    }

    MessageType formerNames(Map<Integer, List<String>> ofFields) {
        formerNames = Map.copyOf(ofFields);
        return this;
    }

    @Override
    public String protoName() {
        return protoName;
    }

    @Override
    public int wireType() {
        return 2;
    }

    /** Returns the Java form of the values that this message carries. */
    public Kind kind() {
        return kind;
    }

    /**
     * Returns the erased Java type of the values that this message carries. For the parameters of a method, the type is
     * {@code Object[]}. For the state of an exception, the type is that of the exception, although codecs read and
     * write the parameters of its constructor.
     */
    public Class<?> javaClass() {
        return javaClass;
    }

    /**
     * Returns the name of the Java type with its type arguments, such as {@code com.acme.Page<com.acme.Item>}. For a
     * message that RPCX makes for the parameters or the result of one method, returns a text that names the method.
     */
    public String javaName() {
        return javaName;
    }

    /**
     * Returns the number of parameters of the method or constructor to which this message belongs; 0 if the kind of
     * this message is not {@link Kind#PARAMETERS}. Parameters that are streams are counted too, although the message
     * has no fields for them.
     */
    public int arity() {
        return arity;
    }

    /**
     * Returns the position of each field's parameter in the method or constructor, counted from 0. The list is empty if
     * the kind of this message is not {@link Kind#PARAMETERS}.
     */
    public List<Integer> positions() {
        return positions;
    }

    /** Returns the source of the fields' numbers. */
    public NumberSource source() {
        return source;
    }

    /** Returns the fields in the order of declaration. The constructor of a record has its parameters in this order. */
    public List<FieldType> fields() {
        return fields;
    }

    /** Returns the indexes of {@link #fields}, sorted by field number. Codecs write the fields in this order. */
    public int[] inOrderOfNumbers() {
        return IntStream.range(0, fields.size())
                .boxed()
                .sorted(Comparator.comparingInt(i -> fields.get(i).number()))
                .mapToInt(i -> i)
                .toArray();
    }

    /** Returns the getters of the fields of a record, bean or constructed class, in the order of {@link #fields}. */
    public List<Method> getters() {
        return getters;
    }

    /** Returns the setters of the fields of a bean, in the order of {@link #fields}. */
    public List<Method> setters() {
        return setters;
    }

    /**
     * Returns the canonical constructor of a record; for a bean, the constructor without parameters; for a constructed
     * class, the one that takes the values of all {@link #fields} in their order.
     *
     * @throws IllegalStateException if the message carries none of these three
     */
    public Constructor<?> constructor() {
        if (constructor == null) {
            throw new IllegalStateException(protoName + " is a " + kind + " and has no constructor");
        }
        return constructor;
    }

    /**
     * Returns the value that is read if none of the known cases of the sealed type is set, for example because the
     * sender is newer and has set a case that is unknown here; null if there is no such value.
     */
    public @Nullable Object unknownCase() {
        return unknownCase;
    }

    /** Returns the numbers and names of removed fields. */
    public List<Reserved> reserved() {
        return reserved;
    }

    /** Returns the names that fields had before they were renamed, by the numbers of the fields. */
    Map<Integer, List<String>> formerNames() {
        return formerNames;
    }

    /**
     * Returns whether a value of the given type can contain a set or a map, at any depth. A {@link Collection} does not
     * count as a set here. Call this method only when all message types that the given type contains have their fields.
     */
    public static boolean holdsSetOrMap(Shape shape) {
        return holds(shape, MessageType::isSetOrMap, new HashSet<>());
    }

    /**
     * Returns whether a message of the given type can contain a decimal number ({@link WellKnown#DECIMAL}), at any
     * depth. Keys of maps are ignored. Call this method only when all message types that the given type contains have
     * their fields.
     */
    public static boolean holdsDecimal(Shape shape) {
        return holds(shape, field -> field.shape() == WellKnown.DECIMAL, new HashSet<>());
    }

    /**
     * Returns whether equal values of the given type can be written as different bytes. This is so if the type
     * contains, at any depth, a set, a map or a {@link Collection}, which can be a set. Call this method only when all
     * message types that the given type contains have their fields.
     */
    public static boolean mayHaveNoOrder(Shape shape) {
        return holds(shape, field -> isSetOrMap(field) || field.javaClass() == Collection.class, new HashSet<>());
    }

    private static boolean isSetOrMap(FieldType field) {
        return field.holder() == FieldType.Holder.SET || field.holder() == FieldType.Holder.MAP;
    }

    private static boolean holds(Shape shape, Predicate<FieldType> wanted, Set<Shape> met) {
        if (!(shape instanceof MessageType message) || !met.add(message)) {
            return false;
        }
        for (FieldType field : message.fields) {
            if (wanted.test(field) || holds(field.shape(), wanted, met)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public String toString() {
        return kind + " " + protoName + " (" + javaClass.getName() + ")";
    }
}
