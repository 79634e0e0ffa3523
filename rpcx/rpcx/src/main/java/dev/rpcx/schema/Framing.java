package dev.rpcx.schema;

import dev.rpcx.schema.FieldType.Holder;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * How the bytes of what goes one way in a call are framed: a kind for each of its fields 1 to 6. Calls between two
 * sides that have different kinds are refused when they are made, and by {@link Compatibility} when one side is
 * changed: both reckon here. Source: rpcx/spec/wire.md, "Methods".
 */
public final class Framing {
    /** Fields that have a kind. */
    public static final int FIELDS = 6;

    /** That a kind takes. */
    public static final int BITS = 4;

    /** A message that is the whole body, in the place of field 1. */
    public static final int WHOLE = 15;

    /** No field of that number. */
    private static final int NOTHING = 0;

    /** A field of a message, as for a nullable or an {@link java.util.Optional} one. */
    private static final int MESSAGE = 5;

    private static final int PACKED = 6;
    private static final int REPEATED = 7;

    /** This is added to the kind of a value whose absence is null, which would read as 0 or "" at the other side. */
    private static final int CAN_BE_NULL = 8;

    private Framing() {}

    /** Field 1 in the lowest bits. */
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

    /** Whether all fields of both are framed alike, also those that have no kind in what is held against a peer's. */
    public static boolean isAlike(MessageType one, MessageType other) {
        return of(one) == of(other) && kinds(one).equals(kinds(other));
    }

    private static Map<Integer, Integer> kinds(MessageType type) {
        Map<Integer, Integer> kinds = new HashMap<>();
        type.fields().forEach(field -> kinds.put(field.number(), kind(field.holder(), field.shape())));
        return kinds;
    }

    /** Returns the same for what a lock has of the message. */
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
        return number > FIELDS ? 0 : kind << (number - 1) * BITS;
    }

    /** Returns the kind of the field with that number; {@link #NOTHING} where there is none. */
    static int kind(int kinds, int number) {
        return number < 1 || number > FIELDS ? NOTHING : kinds >>> (number - 1) * BITS & (1 << BITS) - 1;
    }

    /** Whether two kinds of one field keep the sides apart; what one side does not have was added or is gone. */
    public static boolean differ(int one, int other) {
        return one != other && one != NOTHING && other != NOTHING;
    }

    /** Whether what goes one way is a message of its own for one side, and for the other has fields in one. */
    public static boolean isWholeForOne(int one, int other) {
        boolean isWhole = kind(one, 1) == WHOLE;
        return isWhole != (kind(other, 1) == WHOLE) && (isWhole ? other : one) != NOTHING;
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
        LineType type = LineType.of(lineType);
        Holder holder = switch (type.label()) {
            case ONE -> Holder.PLAIN;
            case OPTIONAL -> Holder.NULLABLE;
            case LIST, REPEATED -> Holder.LIST;
            case SET -> Holder.SET;
            case MAP -> Holder.MAP;
        };
        return kind(holder, like(type.element(), lock));
    }

    /** A shape of the same kind, as all enums and all messages have one. */
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
