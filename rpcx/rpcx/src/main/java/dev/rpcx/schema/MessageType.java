package dev.rpcx.schema;

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

/** One Protobuf message and the Java type that it carries. Two uses of a generic type are two messages. */
public final class MessageType implements Shape {
    /** What stands behind a message on the Java side. */
    public enum Kind {
        /** A record: accessors and the canonical constructor. */
        RECORD,
        /** A class with a constructor without parameters, getters and setters. */
        BEAN,
        /** A sealed type: one field for each case, of which at most one is set. */
        ONEOF,
        /** Any value that is no message of its own, as field 1. */
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

    /** A number that a removed field had, with its name. */
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

    /** Which of the five forms it has. */
    public Kind kind() {
        return kind;
    }

    /** The erased Java type of a value; {@code Object[]} for parameters. */
    public Class<?> javaClass() {
        return javaClass;
    }

    /** The type as its uses are told apart: {@code com.acme.Page<com.acme.Item>}. */
    public String javaName() {
        return javaName;
    }

    /** Of parameters: how many the method has, those included that are streams and no field. */
    public int arity() {
        return arity;
    }

    /** Of parameters: which of them each field is. */
    public List<Integer> positions() {
        return positions;
    }

    /** Where the numbers came from. */
    public NumberSource source() {
        return source;
    }

    /** In the order of declaration, which is the order of the constructor's parameters. */
    public List<FieldType> fields() {
        return fields;
    }

    /** Places in {@link #fields} in the order of numbers, in which they are written. */
    public int[] inOrderOfNumbers() {
        return IntStream.range(0, fields.size())
                .boxed()
                .sorted(Comparator.comparingInt(i -> fields.get(i).number()))
                .mapToInt(i -> i)
                .toArray();
    }

    /** Of a record or bean, one a field. */
    public List<Method> getters() {
        return getters;
    }

    /** Of a bean, one a field. */
    public List<Method> setters() {
        return setters;
    }

    /** Of a record the canonical one, of a bean the one without parameters. */
    public Constructor<?> constructor() {
        if (constructor == null) {
            throw new IllegalStateException(protoName + " is a " + kind + " and has no constructor");
        }
        return constructor;
    }

    /** Of a sealed type: what a case of a newer peer is read as. */
    public @Nullable Object unknownCase() {
        return unknownCase;
    }

    /** Numbers and names of removed fields. */
    public List<Reserved> reserved() {
        return reserved;
    }

    /**
     * Whether a value has a set or a map anywhere in it: their order differs from process to process, and comparing two
     * of them takes longer than reading them. For a type whose messages are whole.
     */
    public static boolean holdsSetOrMap(Shape shape) {
        return holds(shape, MessageType::isSetOrMap, new HashSet<>());
    }

    /** Whether a value has a decimal in it, that of a set's elements or a map's values included. For a whole type. */
    public static boolean holdsDecimal(Shape shape) {
        return holds(shape, field -> field.shape() == WellKnown.DECIMAL, new HashSet<>());
    }

    /**
     * Whether equal values may be written as different bytes: where there is a set or a map, or a {@link Collection},
     * which is read as a list and may be written from a set. For a type whose messages are whole.
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
