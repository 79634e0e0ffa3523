package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which instances calls go to. */
@Timeout(60)
class ChooserTest {
    private final HandPlatform hand = new HandPlatform();
    private final Client client = Client.builder().platform(hand).build();

    @AfterEach
    void end() {
        client.end();
    }

    /** Names as pods have them, of which the JDK's hash is one and the same. */
    @Test
    void keysAreSharedByInstancesWhoseNamesHaveOneHash() {
        Endpoint[] both = {new Endpoint("pod-c2", 9000), new Endpoint("pod-ap", 9000)};
        assertThat(both[0].key().hashCode()).isEqualTo(both[1].key().hashCode());
        Chooser chooser = new ClientCluster(client, 1, 1, Choice.CONSISTENT_HASH)
                .start(Endpoints.of(both))
                .chooser();
        int[] keys = new int[2];
        for (int key = 1; key <= 2_000; key++) {
            keys[chooser.first(key)]++;
        }
        assertThat(keys[0]).isBetween(500, 1_500);
    }
}
