package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Tests that two versions of one service understand each other, in both directions. */
class EvolutionTest {
    static class Old {
        enum Colour {
            @Field(1)
            RED,
            @Unknown
            OTHER
        }

        enum Strict {
            @Field(1)
            ON
        }

        sealed interface Event permits Created, Unheard {}

        @Field(1)
        record Created(@Field(1) String id) implements Event {}

        @Unknown
        record Unheard() implements Event {}

        record Order(
                @Field(1) String id,
                @Field(2) Colour colour,
                @Field(4) int removedLater,
                @Field(5) Event event) {}

        record Switch(@Field(1) Strict strict) {}

        interface Shop {
            String order(Order order, int count);
        }
    }

    static class New {
        enum Colour {
            @Field(2)
            GREEN,
            @Field(1)
            RED,
            @Unknown
            OTHER
        }

        enum Strict {
            @Field(1)
            ON,
            @Field(2)
            HALF
        }

        sealed interface Event permits Deleted, Created, Unheard {}

        @Field(2)
        record Deleted(@Field(1) String why) implements Event {}

        @Field(1)
        record Created(@Field(1) String id) implements Event {}

        @Unknown
        record Unheard() implements Event {}

        record Order(
                @Field(6) List<String> notes,
                @Field(7) BigDecimal price,
                @Field(1) String id,
                @Field(2) Colour colour,
                @Field(5) Event event,
                @Field(8) Optional<Long> weight) {}

        record Switch(@Field(1) Strict strict) {}

        interface Shop {
            String order(Order order, int count, String note);
        }
    }

    private static Object carry(Object value, Class<?> to) {
        ByteBuf buffer = Unpooled.buffer();
        Codecs.standard(EvolutionTest.class).value(value.getClass()).write(value, buffer);
        return Codecs.standard(EvolutionTest.class).value(to).read(buffer);
    }

    @Test
    void oldReadsNew() {
        New.Order order = new New.Order(
                List.of("a"), BigDecimal.TEN, "7", New.Colour.GREEN, new New.Deleted("no"), Optional.of(1L));
        assertThat(carry(order, Old.Order.class)).isEqualTo(new Old.Order("7", Old.Colour.OTHER, 0, new Old.Unheard()));
    }

    @Test
    void newReadsOld() {
        Old.Order order = new Old.Order("7", Old.Colour.RED, 5, new Old.Created("x"));
        assertThat(carry(order, New.Order.class))
                .isEqualTo(new New.Order(List.of(), null, "7", New.Colour.RED, new New.Created("x"), Optional.empty()));
    }

    @Test
    void aParameterAddedAtTheEndIsAbsent() {
        Method older = RoundTripTest.method(Old.Shop.class, "order");
        Method newer = RoundTripTest.method(New.Shop.class, "order");
        ByteBuf buffer = Unpooled.buffer();
        Old.Order order = new Old.Order("7", Old.Colour.RED, 5, new Old.Created("x"));
        Codecs.standard(EvolutionTest.class).parameters(older).write(new Object[] {order, 3}, buffer);
        Object[] read = Codecs.standard(EvolutionTest.class).parameters(newer).read(buffer);
        assertThat(read[1]).isEqualTo(3);
        assertThat(read[2]).isEqualTo("");
    }

    @Test
    void aValueThatIsNotKnownIsRefusedWhereNoneStandsForIt() {
        assertThatThrownBy(() -> carry(new New.Switch(New.Strict.HALF), Old.Switch.class))
                .hasMessageContaining("Strict")
                .hasMessageContaining("@Unknown");
    }
}
