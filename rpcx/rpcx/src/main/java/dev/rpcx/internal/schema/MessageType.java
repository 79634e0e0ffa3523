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

/** One Protobuf message and the Java type that it carries. Two different uses of a generic type are two messages. */
public final class MessageType implements Shape {
    /** Form that a message has on the Java side. */
    public enum Kind {
        /** A record, with its accessors and the canonical constructor. */
        RECORD,
        /** A class with a constructor without parameters, and with getters and setters. */
        BEAN,
        /** A sealed type, with one field for each case, of which at most one is set. */
        ONEOF,
        /**
         * A single value as field 1: one that is not a message of its own, or one that can be null. For {@code void}
         * the message has no field.
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

    /** A number that a removed field had, with the name of the field. */
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

    /** Returns which of the five forms the message has. */
    public Kind kind() {
        return kind;
    }

    /** Returns the erased Java type of a value, which is {@code Object[]} for parameters. */
    public Class<?> javaClass() {
        return javaClass;
    }

    /**
     * Returns the name of the Java type with its type arguments, which tells the uses of a generic type apart:
     * {@code com.acme.Page<com.acme.Item>}.
     */
    public String javaName() {
        return javaName;
    }

    /**
     * Returns how many parameters the method has, including parameters that are streams and therefore no fields. This
     * is for {@code PARAMETERS} only.
     */
    public int arity() {
        return arity;
    }

    /**
     * Returns for each field the position of its parameter in the method, counted from 0. This is for
     * {@code PARAMETERS} only.
     */
    public List<Integer> positions() {
        return positions;
    }

    /** Returns the source of the numbers. */
    public NumberSource source() {
        return source;
    }

    /** Returns the fields in the order of declaration, which is the order of the constructor's parameters. */
    public List<FieldType> fields() {
        return fields;
    }

    /**
     * Returns the indexes of {@link #fields} in the order of the fields' numbers, which is the order in which fields
     * are written.
     */
    public int[] inOrderOfNumbers() {
        return IntStream.range(0, fields.size())
                .boxed()
                .sorted(Comparator.comparingInt(i -> fields.get(i).number()))
                .mapToInt(i -> i)
                .toArray();
    }

    /** Returns the getter of each field of a record or bean. */
    public List<Method> getters() {
        return getters;
    }

    /** Returns the setter of each field of a bean. */
    public List<Method> setters() {
        return setters;
    }

    /**
     * Returns the canonical constructor of a record, or the constructor without parameters of a bean.
     *
     * @throws IllegalStateException if the message is neither
     */
    public Constructor<?> constructor() {
        if (constructor == null) {
            throw new IllegalStateException(protoName + " is a " + kind + " and has no constructor");
        }
        return constructor;
    }

    /**
     * Returns the value that a case of a newer peer is read as; null for a sealed type without one, and for all other
     * forms.
     */
    public @Nullable Object unknownCase() {
        return unknownCase;
    }

    /** Returns the numbers and names of removed fields. */
    public List<Reserved> reserved() {
        return reserved;
    }

    /**
     * Says whether a value has a set or a map anywhere in it. The order of a set or a map differs from process to
     * process, and comparing two of them takes longer than reading them. All messages of the type must have their
     * fields already.
     */
    public static boolean holdsSetOrMap(Shape shape) {
        return holds(shape, MessageType::isSetOrMap, new HashSet<>());
    }

    /**
     * Says whether a message has a decimal anywhere in it, including decimals that are a set's elements or a map's
     * values; a map's keys are not looked at. All messages of the type must have their fields already.
     */
    public static boolean holdsDecimal(Shape shape) {
        return holds(shape, field -> field.shape() == WellKnown.DECIMAL, new HashSet<>());
    }

    /**
     * Says whether equal values may be written as different bytes. They may be where there is a set or a map, or a
     * {@link Collection}, which is read as a list and may be written from a set. All messages of the type must have
     * their fields already.
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
