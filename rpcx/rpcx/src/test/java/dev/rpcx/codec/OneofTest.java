package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.codec.CodecException.Code;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Unknown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/** Tests to which case of a sealed type a value belongs, and which values belong to none. */
class OneofTest {
    sealed interface Animal permits Dog, Puppy, Cat, Other {}

    static non-sealed class Dog implements Animal {
        private String name = "";

        public String getName() {
            return name;
        }

        public void setName(String name) {
            this.name = name;
        }
    }

    static non-sealed class Puppy extends Dog implements Animal {
        private int weeks;

        public int getWeeks() {
            return weeks;
        }

        public void setWeeks(int weeks) {
            this.weeks = weeks;
        }
    }

    record Cat(int lives) implements Animal {}

    @Unknown
    record Other() implements Animal {}

    /** A class that is not a case itself. */
    static class Stray extends Puppy {}

    private static final Schema SCHEMA = new Schema(LockFile.none());
    private static final Codec<Object> CODEC =
            Codecs.of(SCHEMA, Limits.STANDARD).value(Animal.class);

    private static Object carried(Object value) {
        ByteBuf bytes = Unpooled.buffer();
        CODEC.write(value, bytes);
        return CODEC.read(bytes);
    }

    @Test
    void aCaseIsToldByItsOwnClassWhereverItsSuperclassStands() {
        Puppy puppy = new Puppy();
        puppy.setName("Rex");
        puppy.setWeeks(7);
        assertThat(carried(puppy)).isInstanceOfSatisfying(Puppy.class, read -> {
            assertThat(read.getName()).isEqualTo("Rex");
            assertThat(read.getWeeks()).isEqualTo(7);
        });
        Dog dog = new Dog();
        dog.setName("Hasso");
        assertThat(carried(dog))
                .isInstanceOfSatisfying(
                        Dog.class, read -> assertThat(read.getName()).isEqualTo("Hasso"));
        assertThat(carried(new Cat(9))).isEqualTo(new Cat(9));
        assertThat(carried(new Other())).isEqualTo(new Other());
    }

    /**
     * Unchecked code may return another object. If it were written as nothing, its reader would read the unknown case.
     */
    @Test
    void whatIsNoCaseIsRefused() {
        for (Object none : new Object[] {new Stray(), new FutureTask<>(() -> new Cat(1)), "a text"}) {
            ByteBuf bytes = Unpooled.buffer();
            assertThatThrownBy(() -> CODEC.write(none, bytes))
                    .isInstanceOfSatisfying(
                            CodecException.class, e -> assertThat(e.code()).isEqualTo(Code.REFUSED))
                    .hasMessageContaining("Animal: an object whose class is none of the cases")
                    .hasMessageNotContaining(none.getClass().getName())
                    .cause()
                    .hasMessageContaining(none.getClass().getName());
            assertThat(bytes.isReadable()).isFalse();
        }
    }

    @Test
    void theUnknownHasNoField() {
        MessageType type = SCHEMA.value(Animal.class);
        assertThat(type.fields()).hasSize(3);
        assertThat(CODEC.read(Unpooled.EMPTY_BUFFER)).isEqualTo(new Other());
    }
}
