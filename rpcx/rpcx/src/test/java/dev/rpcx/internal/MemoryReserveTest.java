package dev.rpcx.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The reserve is given up for whoever needs it, and there again from the next connection on. */
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
}
