package dev.rpcx.zookeeper;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.jspecify.annotations.Nullable;

/**
 * Identity of a session at ZooKeeper, which also decides who may change the nodes that the session makes. If there is
 * an identity, only that identity can change them; everybody who reaches ZooKeeper can read them. A path that exists
 * already keeps its own access list. The parts that are missing from it belong to the registration that makes them: if
 * services of several identities have a part in common, make that part yourself.
 */
public final class ZooKeeperAccess {
    private static final ZooKeeperAccess OPEN = new ZooKeeperAccess(null, false);

    private final @Nullable String digest;
    private final boolean owned;

    private ZooKeeperAccess(@Nullable String digest, boolean owned) {
        this.digest = digest;
        this.owned = owned;
    }

    /**
     * Returns the access without an identity, by which everybody may change the nodes. It is the default, for a
     * ZooKeeper that only your own services reach.
     */
    public static ZooKeeperAccess open() {
        return OPEN;
    }

    /**
     * Returns an identity for digest authentication. All servers of a service need the same user: whoever registers in
     * a path has to be the one who made it.
     *
     * @param user name without a colon
     * @param password sent over the connection as plain text: connect to ZooKeeper with TLS, or within a network of
     *     your own
     */
    public static ZooKeeperAccess digest(String user, String password) {
        if (user.isEmpty() || user.indexOf(':') >= 0 || password.isEmpty()) {
            throw new IllegalArgumentException(
                    // The message does not contain the user, which may have been given as "user:password".
                    "user: empty, with a colon, or without a password"
                            + " (expected: a name without colon, and a password)");
        }
        return new ZooKeeperAccess(user + ":" + password, true);
    }

    /**
     * Returns an identity for SASL (Kerberos). A JAAS configuration of this process sets up ZooKeeper's client for it.
     */
    public static ZooKeeperAccess sasl() {
        return new ZooKeeperAccess(null, true);
    }

    /** Sends a digest identity to ZooKeeper. Other identities need nothing from this class. */
    void introduce(ZooKeeper session) {
        if (digest != null) {
            session.addAuthInfo("digest", digest.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Returns the access list for the nodes that this session makes. */
    List<ACL> acl() {
        if (!owned) {
            return ZooDefs.Ids.OPEN_ACL_UNSAFE;
        }
        List<ACL> acl = new ArrayList<>(ZooDefs.Ids.CREATOR_ALL_ACL);
        acl.addAll(ZooDefs.Ids.READ_ACL_UNSAFE);
        return acl;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof ZooKeeperAccess o && owned == o.owned && Objects.equals(digest, o.digest);
    }

    @Override
    public int hashCode() {
        return Objects.hash(owned, digest);
    }

    /** Returns the kind of the identity, without the password. */
    @Override
    public String toString() {
        return digest != null ? "digest" : owned ? "sasl" : "open";
    }
}
