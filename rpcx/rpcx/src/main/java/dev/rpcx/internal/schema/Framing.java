package dev.rpcx.internal.schema;

import dev.rpcx.internal.schema.FieldType.Holder;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Describes the fields of requests, replies and stream items as far as both sides of a call have to agree on them. Each
 * of the fields 1 to 6 of such a message has a kind, such as a number, a text or a list. A kind takes 4 bits. A client
 * refuses a call if the server has another kind for a field, and {@link Compatibility} reports a changed kind as a
 * break. Source: rpcx/spec/wire.md, "Methods".
 */
public final class Framing {
    /** Number of fields whose kinds a client compares with those of the server: the fields 1 to 6. */
    public static final int MAX_FIELDS = 6;

    /** Number of bits in which the kind of one field is stored. */
    public static final int KIND_BITS = 4;

    /**
     * Value that replaces the kind of field 1 if a whole request, reply or stream item is one of the user's messages.
     * The kinds of that message's own fields are not stored.
     */
    public static final int WHOLE = 15;

    /** Kind that is stored for a missing field, for example for field 3 of a request with only the fields 1 and 2. */
    private static final int NO_FIELD = 0;

    /**
     * Kind of a field that holds a message, for example the result of a method that returns an
     * {@link java.util.Optional} of a record.
     */
    private static final int MESSAGE = 5;

    private static final int PACKED = 6;
    private static final int REPEATED = 7;

    /**
     * Bit that is set in the kind of a field whose declaration allows null. The bit is not used for types, such as
     * messages, for which {@link Schema#hasNull} returns true. A field of such a type is read as null if it was not
     * sent, even if the field's declaration does not allow null.
     */
    private static final int CAN_BE_NULL = 8;

    private Framing() {}

    /**
     * Returns a number that describes the fields of a message. If RPCX has made the message itself, to hold parameters
     * or a single value, the number contains the kinds of the fields 1 to 6. Field 1 is stored in the lowest
     * {@link #KIND_BITS} bits. If the message is a type of the user, for example a record, the number is
     * {@link #WHOLE}.
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

    /**
     * Says whether two messages have fields with the same numbers and kinds. All fields are compared, also those with
     * numbers above 6, which {@link #of(MessageType)} ignores. Returns false if one message is a type of the user, and
     * RPCX has made the other one to hold parameters or a single value.
     */
    public static boolean isAlike(MessageType one, MessageType other) {
        return of(one) == of(other) && kinds(one).equals(kinds(other));
    }

    private static Map<Integer, Integer> kinds(MessageType type) {
        Map<Integer, Integer> kinds = new HashMap<>();
        type.fields().forEach(field -> kinds.put(field.number(), kind(field.holder(), field.shape())));
        return kinds;
    }

    /**
     * Returns the kinds of the fields 1 to 6 of a request or reply, in the form of {@link #of(MessageType)}. The fields
     * are read from a lock file.
     *
     * @param sent entry of the request or reply in the lock file
     * @param lock content of the lock file
     */
    static int of(LockFile.Entry sent, LockFile lock) {
        int kinds = 0;
        for (LockFile.Line line : sent.lines().values()) {
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
     * Returns the kind of the field with this number. Returns {@link #NO_FIELD} if there is no such field, or if the
     * number is not 1 to 6.
     *
     * @param kinds kinds of all fields, in the form that {@link #of(MessageType)} returns
     */
    static int kind(int kinds, int number) {
        return number < 1 || number > MAX_FIELDS ? NO_FIELD : kinds >>> (number - 1) * KIND_BITS & (1 << KIND_BITS) - 1;
    }

    /**
     * Says whether the client and the server have different kinds for one field, so that they cannot call each other. A
     * field that only one of them has makes no difference.
     *
     * @param one kind of the field on one side
     * @param other kind of the field on the other side
     */
    public static boolean differ(int one, int other) {
        return one != other && one != NO_FIELD && other != NO_FIELD;
    }

    /**
     * Returns whether both of these are true: one side of a call has one of the user's messages as the whole request,
     * reply or stream item, and the other side has a message that RPCX has made. Returns false if the message that RPCX
     * has made has none of the fields 1 to 6. For example, the request of a method without parameters has no fields.
     *
     * @param one kinds of the fields on one side, in the form that {@link #of(MessageType)} returns
     * @param other kinds of the fields on the other side, in the same form
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

    private static int kind(String lineType, LockFile lock) {
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
     * Returns a {@link Shape} for which {@link #kind(Holder, Shape)} has the same result as for the shape of the named
     * type. For an enum or a message, this can be the shape of another type, since {@code kind} has one result for all
     * enums, and one result for all messages.
     *
     * @param name name of the type, as the lock file writes it
     */
    private static Shape like(String name, LockFile lock) {
        for (Scalar scalar : Scalar.values()) {
            if (scalar.name().toLowerCase(Locale.ROOT).equals(name)) {
                return scalar;
            }
        }
        LockFile.Entry entry = lock.entries().get(name);
        return entry != null && entry.kind().equals("enum") ? Scalar.INT : WellKnown.INSTANT;
    }
}
