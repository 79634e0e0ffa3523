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
 * The identity of a session at ZooKeeper, and with it who may change the nodes that the session makes. Where an identity
 * is given, only that identity changes them; anybody who reaches ZooKeeper reads them. A path that is there already keeps its own list;
 * what is missing of it belongs to the registration that makes it, so make the part that services of several identities
 * share yourself.
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
     * Nobody in particular, and everybody may change the nodes: the standard, for a ZooKeeper that only your own
     * services reach.
     */
    public static ZooKeeperAccess open() {
        return OPEN;
    }

    /**
     * Digest authentication. All servers of a service have the same user: who registers in a path has to be who made
     * it.
     *
     * @param user without a colon
     * @param password goes over the connection as it is: ZooKeeper with TLS, or inside
     */
    public static ZooKeeperAccess digest(String user, String password) {
        if (user.isEmpty() || user.indexOf(':') >= 0 || password.isEmpty()) {
            throw new IllegalArgumentException(
                    // the user may be given as "user:password"
                    "user: empty, with a colon, or without a password (expected: the user and its password apart)");
        }
        return new ZooKeeperAccess(user + ":" + password, true);
    }

    /** SASL (Kerberos), as ZooKeeper's client is set up for it by a JAAS configuration of this process. */
    public static ZooKeeperAccess sasl() {
        return new ZooKeeperAccess(null, true);
    }

    /** Says who this session is. */
    void introduce(ZooKeeper session) {
        if (digest != null) {
            session.addAuthInfo("digest", digest.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Access list of the nodes that this session makes. */
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

    /** Without the password. */
    @Override
    public String toString() {
        return digest != null ? "digest" : owned ? "sasl" : "open";
    }
}
