package dev.rpcx.internal.schema;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A Protobuf message, and the Java type whose values it carries. A generic type has one message for each combination of
 * type arguments.
 */
public final class MessageType implements Shape {
    /** Form that a message has on the Java side. */
    public enum Kind {
        /** A record. It is read by its accessors, and made by its canonical constructor. */
        RECORD,
        /** A class with getters, setters and a constructor without parameters. */
        BEAN,
        /** A sealed type. The message has one field for each case, and at most one of these fields is set. */
        ONEOF,
        /**
         * Message with a single value as field 1: a value that is not a message, or a message that can be null. For
         * {@code void} it has no field.
         */
        WRAPPER,
        /** The parameters of a method. */
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

    /** Number and name of a removed field, or of a removed constant or case. */
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

    @Override
    public String protoName() {
        return protoName;
    }

    @Override
    public int wireType() {
        return 2;
    }

    /** Returns the form that the message has on the Java side. */
    public Kind kind() {
        return kind;
    }

    /** Returns the erased Java type of a value, which is {@code Object[]} for parameters. */
    public Class<?> javaClass() {
        return javaClass;
    }

    /** Returns the name of the Java type with its type arguments, such as {@code com.acme.Page<com.acme.Item>}. */
    public String javaName() {
        return javaName;
    }

    /**
     * Returns the number of parameters of the method, including streams, which are not fields of the message. The
     * number is 0 for all forms but {@code PARAMETERS}.
     */
    public int arity() {
        return arity;
    }

    /**
     * Returns for each field the position of its parameter in the method, counted from 0. The list is empty for all
     * forms but {@code PARAMETERS}.
     */
    public List<Integer> positions() {
        return positions;
    }

    /** Returns the source of the fields' numbers. */
    public NumberSource source() {
        return source;
    }

    /** Returns the fields in the order of declaration, which is the order of the constructor's parameters. */
    public List<FieldType> fields() {
        return fields;
    }

    /** Returns the indexes of {@link #fields} by ascending field number, the order in which fields are written. */
    public int[] inOrderOfNumbers() {
        return IntStream.range(0, fields.size())
                .boxed()
                .sorted(Comparator.comparingInt(i -> fields.get(i).number()))
                .mapToInt(i -> i)
                .toArray();
    }

    /** Returns the getters of the fields of a record or bean, in the order of {@link #fields}. */
    public List<Method> getters() {
        return getters;
    }

    /** Returns the setters of the fields of a bean, in the order of {@link #fields}. */
    public List<Method> setters() {
        return setters;
    }

    /**
     * Returns the canonical constructor of a record, or the constructor without parameters of a bean.
     *
     * @throws IllegalStateException if the message is neither a record nor a bean
     */
    public Constructor<?> constructor() {
        if (constructor == null) {
            throw new IllegalStateException(protoName + " is a " + kind + " and has no constructor");
        }
        return constructor;
    }

    /** Returns the value that is read for a case that only a newer peer has; null if there is none. */
    public @Nullable Object unknownCase() {
        return unknownCase;
    }

    /** Returns the numbers and names of removed fields. */
    public List<Reserved> reserved() {
        return reserved;
    }

    /**
     * Says whether a value of this shape may contain a set or a map, at any depth. All messages in the shape must have
     * their fields already.
     */
    public static boolean holdsSetOrMap(Shape shape) {
        return holds(shape, MessageType::isSetOrMap, new HashSet<>());
    }

    /**
     * Says whether a message contains a decimal, at any depth. Keys of maps do not count. All messages in the shape
     * must have their fields already.
     */
    public static boolean holdsDecimal(Shape shape) {
        return holds(shape, field -> field.shape() == WellKnown.DECIMAL, new HashSet<>());
    }

    /**
     * Says whether equal values of this shape may be written as different bytes: the shape contains, at any depth, a
     * set, a map or a {@link Collection}, which may be written from a set. All messages in the shape must have their
     * fields already.
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
