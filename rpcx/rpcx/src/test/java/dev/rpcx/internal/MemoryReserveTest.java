package dev.rpcx.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.Instances;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.lang.reflect.Field;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that the reserve of memory is freed if somebody needs it, and that the next connection allocates it again. */
class MemoryReserveTest {
    @AfterEach
    void isThere() {
        MemoryReserve.keep();
    }

    private static @Nullable Object reserve() throws ReflectiveOperationException {
        Field field = MemoryReserve.class.getDeclaredField("reserve");
        field.setAccessible(true);
        return field.get(null);
    }

    @Test
    void aReserveThatWasUsedIsKeptAgain() throws ReflectiveOperationException {
        MemoryReserve.keep();
        Object before = reserve();
        assertThat(before)
                .isInstanceOfSatisfying(byte[].class, bytes -> assertThat(bytes).hasSize(64 * 1024));
        MemoryReserve.keep();
        assertThat(reserve()).isSameAs(before);
        MemoryReserve.use();
        assertThat(reserve()).isNull();
        MemoryReserve.keep();
        assertThat(reserve()).isInstanceOf(byte[].class).isNotSameAs(before);
    }

    /** Else a process that has only connections of the classic wire would use its reserve once and have none again. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aConnectionOfEitherWireBeginsByKeepingTheReserve(boolean isClassic) throws ReflectiveOperationException {
        Server server = Server.builder(RegistryServer.registry(new Instances.Counted(1)))
                .inProcess()
                .classic(true)
                .build()
                .start();
        Client.Builder settings = Client.builder().inProcess();
        try (Client client = (isClassic ? settings.classic() : settings).build()) {
            MemoryReserve.use();
            assertThat(client.create(Instances.Who.class, "localhost", server.port())
                            .who("key"))
                    .isEqualTo(1);
            assertThat(reserve()).isNotNull();
        } finally {
            server.stop(Duration.ofSeconds(1));
        }
    }
}
