package dev.rpcx.internal.schema;

import dev.rpcx.internal.schema.FieldType.Holder;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Describes how requests, replies and stream items are framed. Each of the fields 1 to 6 has a kind, a number of 4
 * bits. A client refuses a call if the server has another kind for a field, and {@link Compatibility} reports a changed
 * kind as a break. Source: rpcx/spec/wire.md, "Methods".
 */
public final class Framing {
    /** Number of fields that have a kind: the fields 1 to 6. */
    public static final int MAX_FIELDS = 6;

    /** Number of bits of one kind. */
    public static final int KIND_BITS = 4;

    /** Kind of a body that is itself a message. It is stored in place of the kind of field 1. */
    public static final int WHOLE = 15;

    /** Kind that is given for a field number if the message has no field with this number. */
    private static final int NO_FIELD = 0;

    /** Kind of a field that holds a message, such as a message that can be null or an {@link java.util.Optional}. */
    private static final int MESSAGE = 5;

    private static final int PACKED = 6;
    private static final int REPEATED = 7;

    /**
     * Bit in the kind of a field that is read as null if it is absent, and would be read as 0 or as the empty text if
     * its declaration did not allow null.
     */
    private static final int CAN_BE_NULL = 8;

    private Framing() {}

    /**
     * Returns the kinds of the fields 1 to 6, with the kind of field 1 in the lowest bits. Returns {@code WHOLE} for a
     * message that is itself the body.
     */
    public static int of(MessageType type) {
        if (type.kind() != MessageType.Kind.WRAPPER && type.kind() != MessageType.Kind.PARAMETERS) {
            return WHOLE;
        }
        int kinds = 0;
        for (FieldType field : type.fields()) {
            kinds |= at(field.number(), kind(field.holder(), field.shape()));
        }
        return kinds;
    }

    /** Says whether all fields of both messages are framed in the same way, including those above number 6. */
    public static boolean isAlike(MessageType one, MessageType other) {
        return of(one) == of(other) && kinds(one).equals(kinds(other));
    }

    private static Map<Integer, Integer> kinds(MessageType type) {
        Map<Integer, Integer> kinds = new HashMap<>();
        type.fields().forEach(field -> kinds.put(field.number(), kind(field.holder(), field.shape())));
        return kinds;
    }

    /** Returns the kinds of the fields of a request or reply whose lines are in a lock. */
    static int of(Lock.Entry sent, Lock lock) {
        int kinds = 0;
        for (Lock.Line line : sent.lines().values()) {
            if (!line.removed()) {
                kinds |= line.number() == 0 ? WHOLE : at(line.number(), kind(line.type(), lock));
            }
        }
        return kinds;
    }

    private static int at(int number, int kind) {
        return number > MAX_FIELDS ? 0 : kind << (number - 1) * KIND_BITS;
    }

    /**
     * Returns the kind that the field with this number has in {@code kinds}; {@link #NO_FIELD} if there is no such
     * field, or if the number is not 1 to 6.
     */
    static int kind(int kinds, int number) {
        return number < 1 || number > MAX_FIELDS ? NO_FIELD : kinds >>> (number - 1) * KIND_BITS & (1 << KIND_BITS) - 1;
    }

    /**
     * Says whether two sides cannot call each other because a field has different kinds. A field that only one side has
     * does not count.
     */
    public static boolean differ(int one, int other) {
        return one != other && one != NO_FIELD && other != NO_FIELD;
    }

    /**
     * Says whether a request, reply or item is a single message on one side, but consists of separate fields on the
     * other side.
     */
    public static boolean isWholeForOne(int one, int other) {
        boolean isWhole = kind(one, 1) == WHOLE;
        return isWhole != (kind(other, 1) == WHOLE) && (isWhole ? other : one) != NO_FIELD;
    }

    private static int kind(Holder holder, Shape shape) {
        return switch (holder) {
            case LIST, SET -> shape.wireType() == 2 ? REPEATED : PACKED;
            case MAP -> REPEATED;
            case PLAIN, NULLABLE, OPTIONAL -> {
                int kind = switch (shape.wireType()) {
                    case 0 -> 1;
                    case 5 -> 2;
                    case 1 -> 3;
                    default -> shape instanceof Scalar ? 4 : MESSAGE;
                };
                yield holder != Holder.PLAIN && !Schema.hasNull(shape) ? kind | CAN_BE_NULL : kind;
            }
        };
    }

    private static int kind(String lineType, Lock lock) {
        LineType type = LineType.parse(lineType);
        Holder holder = switch (type.label()) {
            case ONE -> Holder.PLAIN;
            case OPTIONAL -> Holder.NULLABLE;
            case LIST, REPEATED -> Holder.LIST;
            case SET -> Holder.SET;
            case MAP -> Holder.MAP;
        };
        return kind(holder, like(type.element(), lock));
    }

    /**
     * Returns a shape with the same kind as this type. It may be the shape of another type: all enums have one kind,
     * and so have all messages.
     *
     * @param name name that the type has in the lock
     */
    private static Shape like(String name, Lock lock) {
        for (Scalar scalar : Scalar.values()) {
            if (scalar.name().toLowerCase(Locale.ROOT).equals(name)) {
                return scalar;
            }
        }
        Lock.Entry entry = lock.entries().get(name);
        return entry != null && entry.kind().equals("enum") ? Scalar.INT : WellKnown.INSTANT;
    }
}
