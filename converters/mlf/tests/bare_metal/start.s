/* Start of the firmware on a Cortex-M4F: vectors, FPU on, .data copied, .bss zeroed, then `main`. */
  .syntax unified
  .cpu cortex-m4
  .thumb

  .section .vectors, "a"
  .word _stack_top
  .word reset + 1
  .rept 14
  .word fault + 1
  .endr

  .text
  .thumb_func
  .global reset
reset:
  ldr r0, =0xE000ED88
  ldr r1, [r0]
  orr r1, r1, #(0xF << 20)
  str r1, [r0]
  dsb
  isb
  ldr r0, =_data_start
  ldr r1, =_data_end
  ldr r2, =_data_load
1:
  cmp r0, r1
  bhs 2f
  ldr r3, [r2], #4
  str r3, [r0], #4
  b 1b
2:
  ldr r0, =_bss_start
  ldr r1, =_bss_end
  movs r2, #0
3:
  cmp r0, r1
  bhs 4f
  str r2, [r0], #4
  b 3b
4:
  bl main
fault:
  /* Semihosting SYS_EXIT with the reason "run-time error". */
  movs r0, #0x18
  ldr r1, =0x20023
  bkpt 0xAB
  b fault
