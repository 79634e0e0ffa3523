package dev.rpcx.internal.ledger;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts what one connection holds. All of this is also counted for the peer's address, and for the server or client as
 * a whole. What has been charged stays charged after the connection has ended, until the {@link Charge} is released: a
 * handler that still runs still holds its request. Thread-safe.
 */
public final class Account {
    private static final LongSupplier NOTHING = () -> 0;

    private final Ledger ledger;
    public final Ledger.@Nullable Address address;
    public final AtomicLongArray held = new AtomicLongArray(Resource.values().length);
    private volatile LongSupplier underWay = NOTHING;

    /** Number of this connection among the connections of its address, or among the connections without an address. */
    private final int number;

    /** Creates an account for what belongs to no connection. */
    public Account(Ledger ledger) {
        this(ledger, null, 0);
    }

    /**
     * Creates the account of a connection.
     *
     * @param address address of the peer; null if it has none
     * @param number number of the connection among the connections of this address, or among the connections without an
     *     address
     */
    public Account(Ledger ledger, Ledger.@Nullable Address address, int number) {
        this.ledger = ledger;
        this.address = address;
        this.number = number;
    }

    /**
     * Returns the id of the group of peers to which a call belongs if it arrives on this connection now: see
     * {@link AddressGroups}.
     */
    public int group() {
        return ledger.groups().groupOf(address == null ? number : address.groupIndex, number);
    }

    /**
     * Creates a charge for an owner. The owner holds some of {@code kind} from time to time, and charges it through the
     * new charge.
     */
    public Charge charge(Resource kind) {
        return new Charge(this, kind);
    }

    /** Returns the claims of all connections of this server or client on {@code kind}. */
    Claims claims(Resource kind) {
        return ledger.claims(kind);
    }

    public boolean tryCharge(Resource kind, long amount) {
        return ledger.tryCharge(this, kind, amount);
    }

    public void release(Resource kind, long amount) {
        ledger.release(this, kind, amount);
    }

    public UnchargedAllowance uncharged() {
        return ledger.uncharged();
    }

    /** Leaves a charge behind for a call that has been given up: see {@link Ledger#leaveCharge}. */
    public LingeringCharge leaveCharge(Object holder, long objectBytes, int places) {
        return ledger.leaveCharge(this, holder, objectBytes, places);
    }

    public long held(Resource kind) {
        return held.get(kind.ordinal());
    }

    /**
     * Says whether this connection holds more of {@code kind} than an eighth of what one connection can hold at most. A
     * client asks this when it has sent a request whose buffer is charged. If the result is true, the client releases
     * the buffer immediately, so that other requests find room. The buffer of a notice is kept in any case.
     */
    public boolean holdsMuch(Resource kind) {
        return held(kind) > ledger.maxOfConnection(kind) / 8;
    }

    /** Says whether all connections together hold more than half of the limit of {@code kind}. */
    public boolean isHalfTaken(Resource kind) {
        return ledger.isHalfTaken(kind);
    }

    /**
     * Sets the counter by which the connection counts its calls under way. Its value has to be zero when nothing is
     * going on: {@code Ledger.audit} reports any other value.
     */
    public void setCallCounter(LongSupplier calls) {
        underWay = calls;
    }

    long callCount() {
        return underWay.getAsLong();
    }

    /**
     * Ends the account, because the connection is over: the connection is not counted any more. What stays charged to
     * this account, such as a {@link LingeringCharge}, does not keep the connection in memory. A second call does
     * nothing.
     */
    public void close() {
        ledger.closed(this);
        underWay = NOTHING;
    }
}
